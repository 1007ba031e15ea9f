"""Sampling in as many parts as memory asks for: a row draws the same whatever is sampled beside it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from training.datasets import Sample
from training.encoding import EncodedPrompt
from training.forward import Prefix
from training.generation import Completions, sample
from training.memory import if_memory_lasts, too_large
from training.policy import Policy


def sample_in_parts(
    policy: Policy,
    samples: Sequence[Sample],
    prompts: Sequence[EncodedPrompt],
    *,
    num_generations: int,
    max_completion_length: int,
    temperature: float,
    uniforms_BT: Tensor | None,
    at_once: int | None,
    prefix: Prefix | None = None,
) -> tuple[Completions, int | None]:
    """`sample`, with at most `at_once` completions in a decode batch, and the number for which memory sufficed.

    When memory runs out, everything is sampled again with half as many, down to one; then OutOfMemory is raised.
    """

    def work(at_once: int) -> Completions:
        parts = [
            sample(
                policy,
                prompts[part.prompts],
                num_generations=part.generations,
                max_completion_length=max_completion_length,
                temperature=temperature,
                uniforms_BT=None if uniforms_BT is None else uniforms_BT[part.rows],
                prefix=prefix if at_once == everything else None,
            )
            for part in _parts(len(prompts), num_generations, at_once)
        ]
        return Completions.joined(parts, pad_id=policy.pad_id)

    everything = len(prompts) * num_generations
    while True:
        size = min(at_once or everything, everything)
        completions = if_memory_lasts(lambda size=size: work(size))
        if completions is not None:
            return completions, at_once
        if size == 1:
            raise too_large(samples, prompts, doing="sampling")
        at_once = size // 2


@dataclass(frozen=True, slots=True)
class _Part:
    prompts: slice
    generations: int
    rows: slice


def _parts(prompts: int, group: int, at_once: int) -> Iterator[_Part]:
    """Whole groups while they fit, else each group in parts; in the order of the rows."""
    if at_once >= group:
        for start in range(0, prompts, at_once // group):
            stop = min(start + at_once // group, prompts)
            yield _Part(slice(start, stop), group, slice(start * group, stop * group))
        return
    for p in range(prompts):
        for first in range(0, group, at_once):
            count = min(at_once, group - first)
            yield _Part(slice(p, p + 1), count, slice(p * group + first, p * group + first + count))
