"""The algorithms' own options: a union told apart by `name`; the defaults are the recommended setting."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from training.config.base import Section


class GRPOConfig(Section):
    """Group Relative Policy Optimization (arXiv 2402.03300) and the variants that differ from it in one term."""

    name: Literal["grpo"] = "grpo"
    loss_type: Literal["grpo", "bnpo", "dr_grpo", "dapo"] = Field(
        default="dapo",
        description="How token losses are averaged: per completion (grpo), per token of the micro-batch (bnpo), by a "
        "constant (dr_grpo) or per token of the whole step (dapo).",
    )
    scale_rewards: Literal["group", "batch", "none"] = Field(
        default="group", description="Which standard deviation divides the centred rewards; none is Dr. GRPO's choice."
    )
    epsilon: float = Field(
        default=0.2, ge=0, lt=1, description="Lower clip range of the importance ratio: 1 - epsilon."
    )
    epsilon_high: float | None = Field(
        default=None,
        ge=0,
        description="Upper clip range, 1 + epsilon_high; empty means the same as epsilon (DAPO uses 0.28).",
    )
    beta: float = Field(
        default=0.0, ge=0, description="Weight of the KL term (k3) to the reference model; 0 loads no reference."
    )
    num_iterations: int = Field(
        default=1, ge=1, le=64, description="Optimizer steps on each generated batch (mu in the paper)."
    )


class RLOOConfig(Section):
    """REINFORCE Leave-One-Out (arXiv 2402.14740): the other completions of a group are the baseline."""

    name: Literal["rloo"] = "rloo"
    normalize_advantages: bool = Field(default=False, description="Whiten the advantages over the whole step.")
    reward_clip_range: tuple[float, float] | None = Field(
        default=None, description="Lower and upper bound that rewards are clamped to before the KL is taken off."
    )
    epsilon: float = Field(
        default=0.2, ge=0, lt=1, description="Lower clip range of the completion's importance ratio."
    )
    epsilon_high: float | None = Field(
        default=None, ge=0, description="Upper clip range; empty means the same as epsilon."
    )
    beta: float = Field(
        default=0.05,
        ge=0,
        description="Weight of the KL (k1, summed over the completion) that is taken off the reward.",
    )
    num_iterations: int = Field(default=1, ge=1, le=64, description="Optimizer steps on each generated batch.")

    @model_validator(mode="after")
    def _clip_range_is_ordered(self) -> "RLOOConfig":
        if self.reward_clip_range is not None and self.reward_clip_range[0] >= self.reward_clip_range[1]:
            low, high = self.reward_clip_range
            raise ValueError(f"reward_clip_range must be [low, high] with low < high, got [{low}, {high}]; swap them.")
        return self


AlgorithmConfig = Annotated[GRPOConfig | RLOOConfig, Field(discriminator="name")]
