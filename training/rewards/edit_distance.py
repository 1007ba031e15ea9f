"""Levenshtein distance in one pass over the longer text, all rows of a column at once as the bits of an integer."""


def edit_distance(left: str, right: str) -> int:
    """Insertions, deletions and replacements that turn one text into the other (Hyyrö 2003, algorithm of Myers)."""
    pattern, text = sorted((left, right), key=len)
    if not pattern:
        return len(text)
    places: dict[str, int] = {}
    for position, sign in enumerate(pattern):
        places[sign] = places.get(sign, 0) | 1 << position
    every, last = (1 << len(pattern)) - 1, 1 << (len(pattern) - 1)
    plus, minus, distance = every, 0, len(pattern)
    for sign in text:
        equal = places.get(sign, 0)
        diagonal = (((equal & plus) + plus) ^ plus) | equal | minus
        up, down = minus | ~(diagonal | plus) & every, plus & diagonal
        distance += bool(up & last) - bool(down & last)
        up = up << 1 & every | 1
        plus, minus = down << 1 & every | ~(diagonal | up) & every, up & diagonal
    return distance


def similarity(left: str, right: str) -> float:
    """1 for equal texts, 0 for texts that share nothing: 1 - distance / length of the longer."""
    longest = max(len(left), len(right))
    return 1.0 if longest == 0 else 1.0 - edit_distance(left, right) / longest
