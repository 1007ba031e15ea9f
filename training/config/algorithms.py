"""The algorithms' own options: a union told apart by `name`; the defaults are the recommended setting."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from training.config.base import Section

Correction = Literal["off", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]
LossType = Literal["grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo"]


class Objective(Section):
    """What every algorithm can be told.  Formulas and sources stand in docs/objectives.md."""

    num_iterations: int = Field(
        default=1, ge=1, le=64, description="Optimizer steps on each generated batch (mu in the GRPO paper)."
    )
    epsilon: float = Field(
        default=0.2, ge=0, lt=1, description="Lower clip range of the importance ratio: 1 - epsilon."
    )
    epsilon_high: float | None = Field(
        default=None,
        ge=0,
        le=100,
        description="Upper clip range, 1 + epsilon_high; empty means the same as epsilon (DAPO uses 0.28).",
    )
    mask_truncated_completions: bool = Field(
        default=False, description="Leave completions that were cut at the length limit out of the loss."
    )
    overlong_buffer: int = Field(
        default=0,
        ge=0,
        le=131_072,
        description="DAPO's soft overlong punishment: over the last so many tokens before max_completion_length up to "
        "overlong_penalty is taken off the reward; 0 is off.",
    )
    overlong_penalty: float = Field(
        default=1.0, ge=0, le=1000, description="What a completion of max_completion_length tokens loses."
    )
    dynamic_sampling_rounds: int = Field(
        default=0,
        ge=0,
        le=100,
        description="DAPO's dynamic sampling: so many times, other prompts are sampled in the place of groups whose "
        "rewards are all equal; 0 is off.",
    )
    correction: Correction = Field(
        default="off",
        description="Importance correction where the sampler's probabilities differ from the trainer's: weights of "
        "tokens or of whole sequences, truncated at the bounds, or 0 outside of them.",
    )
    correction_reduction: Literal["sum", "mean"] = Field(
        default="sum",
        description="A sequence's log-weight is the sum (exact, but its spread grows with length) or the mean over its "
        "tokens.",
    )
    correction_min: float = Field(default=0.0, ge=0, le=1, description="Lower bound of the weights.")
    correction_max: float = Field(default=3.0, ge=1, le=1000, description="Upper bound of the weights.")
    off_policy_threshold: float | None = Field(
        default=None,
        gt=0,
        le=1000,
        description="Leave out completions of negative advantage whose mean log-probability fell by more than this "
        "since they were sampled, in nats a token (DeepSeek-V3.2); empty keeps all.",
    )
    top_entropy_quantile: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Learn from this share of a step's tokens alone, those of the highest entropy (0.2 in the paper).",
    )
    entropy_coef: float = Field(default=0.0, ge=0, le=10, description="Weight of an entropy bonus, per token.")

    @property
    def clip_high(self) -> float:
        """epsilon_high, or epsilon where it is not given."""
        return self.epsilon if self.epsilon_high is None else self.epsilon_high

    @property
    def compares_each_reward(self) -> bool:
        """Whether completions of a group are compared by each reward, not by the weighted sum."""
        return False

    def cautions(self, num_generations: int) -> Iterator[tuple[str, str]]:  # noqa: ARG002  (for subclasses)
        """(field, message) of what is allowed, but seldom meant with groups of `num_generations`."""
        yield from ()

    @model_validator(mode="after")
    def _bounds_leave_room(self) -> Self:
        if self.correction_min == self.correction_max:
            raise ValueError(
                f"expected correction_min < correction_max, got {self.correction_min:g} for both, which leaves no "
                "weight but 1; use correction = off"
            )
        return self


_CLIPPED = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo")
_USERS = {
    "delta": _CLIPPED,
    "epsilon_high": (*_CLIPPED, "cispo"),
    **dict.fromkeys(("sapo_temperature_pos", "sapo_temperature_neg"), ("sapo",)),
    **dict.fromkeys(("vespo_k_pos", "vespo_lambda_pos", "vespo_k_neg", "vespo_lambda_neg"), ("vespo",)),
}
"""The loss types that read an option, where not all do."""


class GRPOConfig(Objective):
    """Group Relative Policy Optimization (arXiv 2402.03300) and the variants that differ from it in one term."""

    name: Literal["grpo"] = "grpo"
    loss_type: LossType = Field(
        default="dapo",
        description="grpo, bnpo, dr_grpo, dapo and luspo clip alike and differ in how token losses are averaged; "
        "cispo, sapo and vespo are objectives of their own. See docs/objectives.md.",
    )
    importance_sampling_level: Literal["token", "sequence"] = Field(
        default="token", description="One ratio a token, or one a completion (GSPO)."
    )
    scale_rewards: Literal["group", "batch", "none"] = Field(
        default="group", description="Which standard deviation divides the centred rewards; none is Dr. GRPO's choice."
    )
    multi_objective_aggregation: Literal["sum_then_normalize", "normalize_then_sum"] = Field(
        default="sum_then_normalize",
        description="Normalise the sum of the rewards, or each reward in its group before they are summed (GDPO).",
    )
    delta: float | None = Field(
        default=None,
        gt=1,
        le=1000,
        description="Upper bound of the ratio where the advantage is negative (INTELLECT-2's two-sided clip).",
    )
    beta: float = Field(
        default=0.0, ge=0, le=1000, description="Weight of the KL term to the reference model; 0 loads no reference."
    )
    kl_estimator: Literal["k1", "k2", "k3"] = Field(
        default="k3", description="Estimator of the KL per token: k3 is unbiased and never negative."
    )
    use_bias_correction_kl: bool = Field(
        default=True, description="Multiply the KL by the importance ratio, which makes its gradient unbiased."
    )
    sapo_temperature_pos: float = Field(
        default=1.0, gt=0, le=100, description="SAPO's temperature where the advantage is positive."
    )
    sapo_temperature_neg: float = Field(
        default=1.05, gt=0, le=100, description="SAPO's temperature where the advantage is negative."
    )
    vespo_k_pos: float = Field(
        default=2.0, ge=0, le=100, description="VESPO's exponent of the weight where the advantage is not negative."
    )
    vespo_lambda_pos: float = Field(
        default=3.0, gt=0, le=100, description="VESPO's decay of the weight where the advantage is not negative."
    )
    vespo_k_neg: float = Field(
        default=3.0, ge=0, le=100, description="VESPO's exponent of the weight where the advantage is negative."
    )
    vespo_lambda_neg: float = Field(
        default=2.0, gt=0, le=100, description="VESPO's decay of the weight where the advantage is negative."
    )

    @property
    def compares_each_reward(self) -> bool:
        return self.multi_objective_aggregation == "normalize_then_sum"

    def cautions(self, num_generations: int) -> Iterator[tuple[str, str]]:
        if num_generations == 2 and self.scale_rewards == "group":  # so does normalize_then_sum, of each reward
            instead = "scale_rewards = none"
            if self.compares_each_reward:
                instead = f"multi_objective_aggregation = sum_then_normalize with {instead}"
            yield (
                "generation.num_generations",
                "with two completions per prompt, scaled advantages are +-0.707 whatever the gap between the rewards; "
                f"use more, or algorithm.{instead}",
            )
        if self.loss_type == "bnpo":
            yield (
                "algorithm.loss_type",
                "bnpo averages over each micro-batch: the loss depends on how memory cuts a step; dapo averages "
                "over the tokens of the whole step",
            )

    @model_validator(mode="after")
    def _options_fit_the_loss_type(self) -> Self:
        for name, users in _USERS.items():
            default = type(self).model_fields[name].default
            if self.loss_type not in users and getattr(self, name) != default:
                left = "empty" if default is None else f"at {default}"
                raise ValueError(
                    f"{name} belongs to loss_type {', '.join(users)}, and loss_type is {self.loss_type}; "
                    f"leave it {left}"
                )
        if self.loss_type in ("cispo", "vespo") and self.importance_sampling_level == "sequence":
            raise ValueError(
                f"{self.loss_type} is made of the ratios of tokens, and importance_sampling_level is sequence; use "
                "token, or loss_type = grpo for GSPO"
            )
        if self.loss_type == "vespo" and self.correction.startswith("sequence"):
            raise ValueError(
                f"vespo makes its own weight of the sequence, and correction is {self.correction}; use token_truncate, "
                "token_mask or off"
            )
        return self

    @model_validator(mode="after")
    def _kl_has_a_gradient(self) -> Self:
        if self.beta > 0 and self.kl_estimator == "k1" and not self.use_bias_correction_kl:
            raise ValueError(
                "the gradient of k1 by itself is 0 in expectation, whatever beta; set use_bias_correction_kl = true, "
                "or use k2 or k3"
            )
        return self

    @model_validator(mode="after")
    def _options_fit_together(self) -> Self:
        if self.delta is not None and self.delta <= 1 + self.clip_high:
            raise ValueError(
                f"delta = {self.delta} must lie above the upper clip bound {1 + self.clip_high:g}; "
                "raise delta or lower epsilon_high"
            )
        if self.compares_each_reward and self.scale_rewards != "group":
            raise ValueError(
                f"normalize_then_sum normalises each reward in its group and knows no scale_rewards = "
                f"{self.scale_rewards}; leave scale_rewards at group"
            )
        return self


class RLOOConfig(Objective):
    """REINFORCE Leave-One-Out (arXiv 2402.14740): the other completions of a group are the baseline."""

    name: Literal["rloo"] = "rloo"
    normalize_advantages: bool = Field(default=False, description="Whiten the advantages over the whole step.")
    reward_clip_range: tuple[float, float] | None = Field(
        default=None, description="Lower and upper bound that rewards are clamped to before the KL is taken off."
    )
    beta: float = Field(
        default=0.05,
        ge=0,
        le=1000,
        description="Weight of the KL (k1, summed over the completion) that is taken off the reward.",
    )

    @model_validator(mode="after")
    def _clip_range_is_ordered(self) -> Self:
        if self.reward_clip_range is not None and self.reward_clip_range[0] >= self.reward_clip_range[1]:
            low, high = self.reward_clip_range
            raise ValueError(f"reward_clip_range must be [low, high] with low < high, got [{low}, {high}]; swap them.")
        return self


AlgorithmConfig = Annotated[GRPOConfig | RLOOConfig, Field(discriminator="name")]

ALGORITHM_CONFIGS = {model.model_fields["name"].default: model for model in get_args(get_args(AlgorithmConfig)[0])}
"""Config class by the algorithm's name."""
