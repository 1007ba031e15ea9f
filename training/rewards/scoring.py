"""All reward functions of a run over the completions of a step."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from training.config import RewardConfig
from training.errors import RewardError
from training.images import SourceImage
from training.records import RewardValue
from training.rewards.batch import Batch
from training.rewards.call import RewardCall
from training.rewards.catalogue import make_function

MAX_ERROR_SHARE = 0.5


class RewardSet:
    """The reward functions of a run, in the order of its configuration."""

    def __init__(
        self,
        functions: Mapping[str, Callable[..., Any]],
        weights: Sequence[float],
        *,
        max_error_share: float = MAX_ERROR_SHARE,
    ) -> None:
        self.names = tuple(functions)
        self.weights = tuple(weights)
        self._calls = [RewardCall(name, function) for name, function in functions.items()]
        self._max_error_share = max_error_share

    def score(
        self,
        *,
        prompts: Sequence[Sequence[Mapping[str, Any]]],
        completions: Sequence[str],
        completion_ids: Sequence[Sequence[int]],
        images: Sequence[Sequence[SourceImage]],
        columns: Sequence[Mapping[str, Any]],
        step: int,
    ) -> list[list[RewardValue]]:
        """One list of values per completion, in configuration order; a failure is a value with its error.

        Raises RewardError when a function fails for more than `max_error_share` of the completions.
        """
        batch = Batch(prompts, completions, completion_ids, images, columns, step)
        by_function = [call.score(batch) for call in self._calls]
        for name, values in zip(self.names, by_function, strict=True):
            self._stop_when_most_fail(name, values, step)
        return [list(row) for row in zip(*by_function, strict=True)]

    def _stop_when_most_fail(self, name: str, values: Sequence[RewardValue], step: int) -> None:
        errors = [value.error for value in values if value.error is not None]
        if len(errors) > self._max_error_share * len(values):
            raise RewardError(
                f"reward {name!r} failed for {len(errors)} of {len(values)} completions of step {step}; "
                f"correct the function or take it out of the run. The first error: {errors[0]}"
            )


def build_rewards(configs: Sequence[RewardConfig], *, max_error_share: float = MAX_ERROR_SHARE) -> RewardSet:
    """Raises ConfigError for an unknown name or a bad option."""
    functions = {config.name: make_function(config.name, dict(config.options)) for config in configs}
    return RewardSet(functions, [config.weight for config in configs], max_error_share=max_error_share)
