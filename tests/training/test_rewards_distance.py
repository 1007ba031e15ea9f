"""Edit distance against the textbook recurrence."""

import random

from training.rewards.edit_distance import edit_distance, similarity


def textbook(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(right, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b))
    return row[-1]


def test_known_distances():
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("intention", "execution") == 5
    assert edit_distance("", "abc") == 3
    assert edit_distance("abc", "abc") == 0


def test_the_bit_parallel_distance_equals_the_recurrence():
    chance = random.Random(3)
    for _ in range(400):
        left, right = ("".join(chance.choices("abc", k=chance.randrange(0, 80))) for _ in range(2))
        assert edit_distance(left, right) == textbook(left, right), (left, right)


def test_similarity_is_between_nothing_and_equal():
    assert similarity("abc", "xyz") == 0
    assert similarity("abcd", "abcx") == 0.75
    assert similarity("", "") == 1
