"""Metrics of a step under TRL's names, from a rollout and the sums of its update."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from training.algorithms.statistics import without_signal
from training.rollouts import Rollout


@dataclass(slots=True)
class Sums:
    """Numerators and denominators that add up over micro-batches."""

    values: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, name: str, numerator: float, denominator: float) -> None:
        old = self.values.get(name, (0.0, 0.0))
        self.values[name] = (old[0] + numerator, old[1] + denominator)

    def means(self) -> dict[str, float]:
        return {name: top / bottom for name, (top, bottom) in self.values.items() if bottom}


def reward_metrics(rollout: Rollout, names: Sequence[str]) -> dict[str, float]:
    """reward, reward_std, frac_reward_zero_std, rewards/{name}/mean|std, unscored; statistics over scored values."""
    totals = [value for value in rollout.rewards_PG.flatten().tolist() if not math.isnan(value)]
    metrics = {"unscored": float(rollout.rewards_PG.numel() - len(totals))}
    metrics |= _mean_and_std("reward", "reward_std", totals)
    metrics["frac_reward_zero_std"] = without_signal(rollout.rewards_PG).float().mean().item()
    for k, name in enumerate(names):
        values = [value for row in rollout.rewards if (value := row[k].value) is not None]
        metrics |= _mean_and_std(f"rewards/{name}/mean", f"rewards/{name}/std", values)
    return metrics


def completion_metrics(rollout: Rollout) -> dict[str, float]:
    """completions/mean_length and so on in tokens; `terminated` ones ended by themselves; clipped_ratio did not."""
    lengths = rollout.completions.mask_BT.sum(1).tolist()
    ended = rollout.completions.ended_B.tolist()
    terminated = [length for length, end in zip(lengths, ended, strict=True) if end]
    metrics = {"completions/clipped_ratio": 1 - len(terminated) / len(lengths)}
    for kind, values in (("length", lengths), ("terminated_length", terminated)):
        if values:
            metrics |= {f"completions/mean_{kind}": sum(values) / len(values)}
            metrics |= {f"completions/min_{kind}": float(min(values)), f"completions/max_{kind}": float(max(values))}
    return metrics


def finite(metrics: Mapping[str, float]) -> dict[str, float]:
    """Without the entries that are NaN or infinite: a record holds finite numbers only."""
    return {name: float(value) for name, value in metrics.items() if math.isfinite(value)}


def _mean_and_std(mean_name: str, std_name: str, values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)
    return {mean_name: mean, std_name: math.sqrt(variance)}
