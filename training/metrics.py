"""Metrics of a step under TRL's names, from the numbers of all its completions and the sums of its update."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from training.algorithms.statistics import without_signal
from training.ranks import Ranks
from training.rollouts import Rollout


@dataclass(slots=True)
class Sums:
    """Numerators and denominators that add up over micro-batches and ranks."""

    values: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, name: str, numerator: float, denominator: float) -> None:
        old = self.values.get(name, (0.0, 0.0))
        self.values[name] = (old[0] + numerator, old[1] + denominator)

    def means(self) -> dict[str, float]:
        return {name: top / bottom for name, (top, bottom) in self.values.items() if bottom}

    @staticmethod
    def total(parts: Iterable["Sums"]) -> "Sums":
        total = Sums()
        for part in parts:
            for name, (numerator, denominator) in part.values.items():
                total.add(name, numerator, denominator)
        return total


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is counted of P prompts with G completions each; small enough to be sent between ranks.

    rewards_PG: weighted totals, NaN where unscored.  values: one list per completion with a value per reward function.
    lengths: tokens of each completion; ended: whether it ended by itself; prompt_lengths: tokens of each prompt.
    """

    rewards_PG: Tensor
    values: Sequence[Sequence[float | None]]
    lengths: Sequence[int]
    ended: Sequence[bool]
    prompt_lengths: Sequence[int]

    @property
    def num_tokens(self) -> int:
        """Tokens as TRL counts them: the prompt for every completion."""
        return sum(self.prompt_lengths) * self.rewards_PG.shape[1] + sum(self.lengths)

    @staticmethod
    def of(rollout: Rollout) -> "Outcome":
        completions = rollout.completions
        return Outcome(
            rewards_PG=rollout.rewards_PG,
            values=[[reward.value for reward in row] for row in rollout.rewards],
            lengths=completions.mask_BT.sum(1).tolist(),
            ended=completions.ended_B.tolist(),
            prompt_lengths=[len(prompt) for prompt in rollout.prompts],
        )

    @staticmethod
    def joined(parts: Sequence["Outcome"]) -> "Outcome":
        """The outcome of all prompts, in the order of the parts."""
        return Outcome(
            rewards_PG=torch.cat([part.rewards_PG for part in parts]),
            values=[row for part in parts for row in part.values],
            lengths=[length for part in parts for length in part.lengths],
            ended=[end for part in parts for end in part.ended],
            prompt_lengths=[length for part in parts for length in part.prompt_lengths],
        )


def outcome_metrics(outcome: Outcome, names: Sequence[str]) -> dict[str, float]:
    """Everything that rewards and lengths alone tell; `names` are those of the reward functions."""
    return reward_metrics(outcome, names) | completion_metrics(outcome)


def reward_metrics(outcome: Outcome, names: Sequence[str]) -> dict[str, float]:
    """reward, reward_std, frac_reward_zero_std, rewards/{name}/mean|std, unscored; statistics over scored values."""
    totals = [value for value in outcome.rewards_PG.flatten().tolist() if not math.isnan(value)]
    metrics = {"unscored": float(outcome.rewards_PG.numel() - len(totals))}
    metrics |= _mean_and_std("reward", "reward_std", totals)
    if outcome.rewards_PG.shape[1] > 1:
        metrics["frac_reward_zero_std"] = without_signal(outcome.rewards_PG).float().mean().item()
    for k, name in enumerate(names):
        values = [value for row in outcome.values if (value := row[k]) is not None]
        metrics |= _mean_and_std(f"rewards/{name}/mean", f"rewards/{name}/std", values)
    return metrics


def completion_metrics(outcome: Outcome) -> dict[str, float]:
    """completions/mean_length and so on in tokens; `terminated` ones ended by themselves; clipped_ratio did not."""
    lengths = outcome.lengths
    terminated = [length for length, end in zip(lengths, outcome.ended, strict=True) if end]
    metrics = {"completions/clipped_ratio": 1 - len(terminated) / len(lengths)}
    for kind, values in (("length", lengths), ("terminated_length", terminated)):
        if values:
            metrics |= {f"completions/mean_{kind}": sum(values) / len(values)}
            metrics |= {f"completions/min_{kind}": float(min(values)), f"completions/max_{kind}": float(max(values))}
    return metrics


def sampler_gap(rollout: Rollout, logp_BT: Tensor | None, ranks: Ranks) -> dict[str, float]:
    """How far the sampler's log-probabilities are from the trainer's: float noise when both agree."""
    if logp_BT is None:
        return {}
    gaps = (logp_BT - rollout.completions.logp_BT).abs()[rollout.completions.mask_BT]
    sums, largest, counts = zip(*ranks.gather((gaps.sum().item(), gaps.max().item(), len(gaps))), strict=True)
    prefix = "sampling/sampling_logp_difference"
    return {f"{prefix}/mean": sum(sums) / sum(counts), f"{prefix}/max": max(largest)}


def finite(metrics: Mapping[str, float]) -> dict[str, float]:
    """Without the entries that are NaN or infinite: a record holds finite numbers only."""
    return {name: float(value) for name, value in metrics.items() if math.isfinite(value)}


def _mean_and_std(mean_name: str, std_name: str, values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)
    return {mean_name: mean, std_name: math.sqrt(variance)}
