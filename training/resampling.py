"""Dynamic sampling (DAPO, arXiv 2503.14476, section 3.2): groups whose rewards are all equal give way to others."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from training.algorithms.statistics import without_signal
from training.config.algorithms import Objective
from training.generation import Completions
from training.rollouts import Rollout


def resample(
    rollout: Rollout, config: Objective, further: Callable[[int, Sequence[int]], Rollout], *, pad_id: int
) -> Rollout:
    """Replace groups without signal, up to `dynamic_sampling_rounds` times, until all have one.

    further(round, places) samples another prompt for each of the places (indices of groups), round counting from 1.
    A group that has no signal either does not replace: the last to be sampled has no claim over the first.
    """
    for number in range(1, config.dynamic_sampling_rounds + 1):
        empty = [place for place, is_empty in enumerate(_without_signal(rollout, config)) if is_empty]
        if not empty:
            break
        other = further(number, empty)
        rollout = _replaced(rollout, empty, other, _without_signal(other, config), pad_id)
    return rollout


def _without_signal(rollout: Rollout, config: Objective) -> list[bool]:
    """Whether a group's totals are all equal, or, where each reward is compared by itself, those of every reward."""
    scored = rollout.scored
    if config.compares_each_reward:
        return without_signal(scored.rewards_PGK).all(1).tolist()
    return without_signal(scored.rewards_PG).tolist()


def _replaced(
    rollout: Rollout, places: Sequence[int], other: Rollout, other_empty: Sequence[bool], pad_id: int
) -> Rollout:
    """Take over the groups of `other` that have a signal; its groups belong to `places`, in order."""
    chosen = list(range(len(rollout.samples)))
    for index, (place, empty) in enumerate(zip(places, other_empty, strict=True)):
        if not empty:
            chosen[place] = len(rollout.samples) + index
    group = rollout.group_size
    rows = [index * group + g for index in chosen for g in range(group)]
    samples, prompts = [*rollout.samples, *other.samples], [*rollout.prompts, *other.prompts]
    texts, rewards = [*rollout.texts, *other.texts], [*rollout.rewards, *other.rewards]
    return replace(
        rollout,
        samples=[samples[index] for index in chosen],
        prompts=[prompts[index] for index in chosen],
        completions=Completions.joined([rollout.completions, other.completions], pad_id=pad_id).rows(rows),
        texts=[texts[row] for row in rows],
        rewards=[rewards[row] for row in rows],
        extra_groups=rollout.extra_groups + len(other.samples),
    )
