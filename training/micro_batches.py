"""Which completions of a step run together: micro-batches within a budget of padded tokens, by length.

A micro-batch of P prompts (each run once) and B completions costs P times its longest prompt plus B times its longest
completion: the tokens that the model reads, padding included.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Indices of prompts, and of their completions in group order, equally many for each prompt."""

    prompts: tuple[int, ...]
    rows: tuple[int, ...]


def padded_tokens(prompt_lengths: Sequence[int], completion_lengths: Sequence[int]) -> int:
    """What prompts and completions cost as one micro-batch."""
    prompts, completions = len(prompt_lengths), len(completion_lengths)
    return prompts * max(prompt_lengths) + completions * max(completion_lengths)


def plan(
    prompt_lengths: Sequence[int], completion_lengths: Sequence[int], budget: int | None
) -> tuple[MicroBatch, ...]:
    """Cut P prompts with G completions each into micro-batches that cost at most `budget`; None cuts nothing.

    Prompts of like length go together, the longest first, so that what does not fit shows at once.  A group that is
    over the budget alone is split, and its prompt read again for every part; one completion is never split.
    """
    group = len(completion_lengths) // len(prompt_lengths)
    if budget is None:
        return (MicroBatch(tuple(range(len(prompt_lengths))), tuple(range(len(completion_lengths)))),)

    def rows(prompts: Sequence[int]) -> tuple[int, ...]:
        return tuple(p * group + g for p in prompts for g in range(group))

    def cost(prompts: Sequence[int]) -> int:
        return padded_tokens([prompt_lengths[p] for p in prompts], [completion_lengths[b] for b in rows(prompts)])

    def size(p: int) -> tuple[int, int]:
        return prompt_lengths[p], max(completion_lengths[p * group : (p + 1) * group])

    batches: list[MicroBatch] = []
    together: list[int] = []
    for p in sorted(range(len(prompt_lengths)), key=size, reverse=True):
        if together and cost([*together, p]) > budget:
            batches.append(MicroBatch(tuple(together), rows(together)))
            together = []
        if cost([p]) > budget:
            batches += _split(p, prompt_lengths[p], rows([p]), completion_lengths, budget)
        else:
            together.append(p)
    if together:
        batches.append(MicroBatch(tuple(together), rows(together)))
    return tuple(batches)


def _split(
    p: int, prompt_length: int, rows: Sequence[int], completion_lengths: Sequence[int], budget: int
) -> list[MicroBatch]:
    """One group in parts, its longest completions first."""
    parts: list[MicroBatch] = []
    left = sorted(rows, key=lambda b: completion_lengths[b], reverse=True)
    while left:
        count = max(1, (budget - prompt_length) // max(completion_lengths[left[0]], 1))
        parts.append(MicroBatch((p,), tuple(sorted(left[:count]))))
        left = left[count:]
    return parts
