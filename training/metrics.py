"""Metrics of a step under TRL's names, from the numbers of all its completions and the sums of its update."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from training.algorithms.statistics import without_signal
from training.algorithms.types import Scored, Stats
from training.memory import peak_bytes
from training.ranks import Ranks
from training.rollouts import Rollout


@dataclass(slots=True)
class Sums:
    """Statistics that add up over micro-batches, iterations and ranks: means as fractions, least and largest values."""

    means: dict[str, tuple[float, float]] = field(default_factory=dict)
    lows: dict[str, float] = field(default_factory=dict)
    highs: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, numerator: float, denominator: float) -> None:
        old = self.means.get(name, (0.0, 0.0))
        self.means[name] = (old[0] + numerator, old[1] + denominator)

    def add_stats(self, stats: Stats) -> None:
        for name, (numerator, denominator) in stats.sums.items():
            self.add(name, numerator, denominator)
        for name, value in stats.lows.items():
            self.lows[name] = min(value, self.lows.get(name, value))
        for name, value in stats.highs.items():
            self.highs[name] = max(value, self.highs.get(name, value))

    def metrics(self) -> dict[str, float]:
        means = {name: top / bottom for name, (top, bottom) in self.means.items() if bottom}
        return means | self.lows | self.highs

    @staticmethod
    def total(parts: Iterable["Sums"]) -> "Sums":
        total = Sums()
        for part in parts:
            total.add_stats(Stats(part.means, part.lows, part.highs))
        return total


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is counted of P prompts with G completions each; small enough to be sent between ranks.

    lengths_PG: tokens of each completion; ended_PG: whether it ended by itself; prompt_lengths: tokens of each prompt;
    extra_groups: groups that were sampled and given up.
    """

    scored: Scored
    lengths_PG: Tensor
    ended_PG: Tensor
    prompt_lengths: Sequence[int]
    extra_groups: int

    @property
    def num_tokens(self) -> int:
        """Tokens as TRL counts them: the prompt for every completion."""
        return sum(self.prompt_lengths) * self.lengths_PG.shape[1] + int(self.lengths_PG.sum())

    @staticmethod
    def of(rollout: Rollout) -> "Outcome":
        completions, shape = rollout.completions, (len(rollout.samples), rollout.group_size)
        return Outcome(
            scored=rollout.scored,
            lengths_PG=completions.mask_BT.sum(1).view(shape).cpu(),
            ended_PG=completions.ended_B.view(shape).cpu(),
            prompt_lengths=[len(prompt) for prompt in rollout.prompts],
            extra_groups=rollout.extra_groups,
        )

    @staticmethod
    def joined(parts: Sequence["Outcome"]) -> "Outcome":
        """The outcome of all prompts, in the order of the parts."""
        scores = torch.cat([part.scored.rewards_PGK for part in parts])
        return Outcome(
            scored=Scored(scores, parts[0].scored.weights_K),
            lengths_PG=torch.cat([part.lengths_PG for part in parts]),
            ended_PG=torch.cat([part.ended_PG for part in parts]),
            prompt_lengths=[length for part in parts for length in part.prompt_lengths],
            extra_groups=sum(part.extra_groups for part in parts),
        )


def outcome_metrics(outcome: Outcome, names: Sequence[str]) -> dict[str, float]:
    """Everything that rewards and lengths alone tell; `names` are those of the reward functions."""
    metrics = reward_metrics(outcome, names) | completion_metrics(outcome)
    if outcome.extra_groups:
        metrics["dynamic_sampling/extra_groups"] = float(outcome.extra_groups)
    return metrics


def reward_metrics(outcome: Outcome, names: Sequence[str]) -> dict[str, float]:
    """reward, reward_std, frac_reward_zero_std, rewards/{name}/mean|std, unscored; statistics over scored values."""
    totals_PG = outcome.scored.rewards_PG
    totals = _scored(totals_PG)
    metrics = {"unscored": float(totals_PG.numel() - len(totals))}
    metrics |= _mean_and_std("reward", "reward_std", totals)
    if totals_PG.shape[1] > 1:
        metrics["frac_reward_zero_std"] = without_signal(totals_PG).float().mean().item()
    for k, name in enumerate(names):
        values = _scored(outcome.scored.rewards_PGK[..., k])
        metrics |= _mean_and_std(f"rewards/{name}/mean", f"rewards/{name}/std", values)
    return metrics


def completion_metrics(outcome: Outcome) -> dict[str, float]:
    """completions/mean_length and so on in tokens; `terminated` ones ended by themselves; clipped_ratio did not."""
    lengths = outcome.lengths_PG.flatten().tolist()
    terminated = outcome.lengths_PG[outcome.ended_PG].tolist()
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


def resource_metrics(trained: int, device: torch.device, ranks: Ranks) -> dict[str, float]:
    """tokens/trained: completion tokens in the loss of all ranks; memory/peak_bytes: of the rank that used most."""
    tokens, peaks = zip(*ranks.gather((trained, peak_bytes(device))), strict=True)
    return {"tokens/trained": float(sum(tokens)), "memory/peak_bytes": float(max(peaks))}


def finite(metrics: Mapping[str, float]) -> dict[str, float]:
    """Without the entries that are NaN or infinite: a record holds finite numbers only."""
    return {name: float(value) for name, value in metrics.items() if math.isfinite(value)}


def _scored(values: Tensor) -> list[float]:
    return [value for value in values.flatten().tolist() if not math.isnan(value)]


def _mean_and_std(mean_name: str, std_name: str, values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)
    return {mean_name: mean, std_name: math.sqrt(variance)}
