"""Dynamic sampling (DAPO, arXiv 2503.14476, section 3.2): groups whose rewards are all equal give way to others."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from training.algorithms.statistics import without_signal
from training.rollouts import Rollout


def resample(
    rollout: Rollout, further: Callable[[int, Sequence[int]], Rollout], *, rounds: int, pad_id: int
) -> Rollout:
    """Replace groups without signal, up to `rounds` times, until all have one.

    further(round, places) samples another prompt for each of the places (indices of groups), round counting from 1.
    A group that has no signal either does not replace: the last to be sampled has no claim over the first.
    """
    for number in range(1, rounds + 1):
        empty = without_signal(rollout.scored.rewards_PG).nonzero()[:, 0].tolist()
        if not empty:
            break
        rollout = _replaced(rollout, empty, further(number, empty), pad_id)
    return rollout


def _replaced(rollout: Rollout, places: Sequence[int], other: Rollout, pad_id: int) -> Rollout:
    """Take over the groups of `other` that have a signal; its groups belong to `places`, in order."""
    chosen = list(range(len(rollout.samples)))
    for index, (place, empty) in enumerate(zip(places, without_signal(other.scored.rewards_PG).tolist(), strict=True)):
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
        completions=rollout.completions.joined(other.completions, pad_id=pad_id).rows(rows),
        texts=[texts[row] for row in rows],
        rewards=[rewards[row] for row in rows],
        extra_groups=rollout.extra_groups + len(other.samples),
    )
