"""RunConfig: everything that defines a run."""

import re

from pydantic import Field, field_validator

from training.config.algorithms import AlgorithmConfig, GRPOConfig
from training.config.base import Section
from training.config.parameters import ParametersConfig
from training.config.sections import (
    CheckpointConfig,
    DataConfig,
    EvaluationConfig,
    GenerationConfig,
    ModelConfig,
    OptimizationConfig,
    ResourcesConfig,
    RewardConfig,
    TrackingConfig,
)

_NAME = re.compile(r"[\w .:+()=-]*", re.UNICODE)


class RunConfig(Section):
    """Everything that defines a run; two equal configs on one machine give the same weights.

    Example (TOML): `[model] path = "demo-color"`, `[[rewards]] name = "accuracy"`, `[algorithm] name = "rloo"`.
    """

    name: str = Field(default="run", min_length=1, max_length=120, description="Shown in lists; need not be unique.")
    project: str = Field(default="default", min_length=1, max_length=80, description="Groups runs.")
    tags: tuple[str, ...] = Field(default=(), max_length=20, description="Words to find the run by.")
    seed: int = Field(default=0, ge=0, lt=2**32, description="Seed of data order, sampling and everything random.")
    model: ModelConfig = Field(default_factory=ModelConfig, title="Model")
    parameters: ParametersConfig = Field(default_factory=ParametersConfig, title="Parameters")
    data: DataConfig = Field(default_factory=DataConfig, title="Data")
    rewards: tuple[RewardConfig, ...] = Field(
        (RewardConfig(name="accuracy"),), min_length=1, max_length=32, title="Rewards"
    )
    algorithm: AlgorithmConfig = Field(default_factory=GRPOConfig, title="Algorithm")
    generation: GenerationConfig = Field(default_factory=GenerationConfig, title="Generation")
    optimization: OptimizationConfig = Field(default_factory=OptimizationConfig, title="Optimization")
    evaluation: EvaluationConfig = Field(default_factory=EvaluationConfig, title="Evaluation")
    checkpoint: CheckpointConfig = Field(default_factory=CheckpointConfig, title="Checkpoints")
    resources: ResourcesConfig = Field(default_factory=ResourcesConfig, title="Resources")
    tracking: TrackingConfig = Field(default_factory=TrackingConfig, title="Tracking")

    @field_validator("name", "project")
    @classmethod
    def _printable(cls, value: str) -> str:
        if not _NAME.fullmatch(value) or not value.strip():
            raise ValueError(f"expected letters, digits, spaces and . : + ( ) = - _ , got {value!r}")
        return value

    @field_validator("rewards")
    @classmethod
    def _rewards_are_distinct(cls, rewards: tuple[RewardConfig, ...]) -> tuple[RewardConfig, ...]:
        names = [r.name for r in rewards]
        if len(set(names)) < len(names):
            raise ValueError(f"each reward may stand once, got {names}; give the one reward a larger weight instead")
        if all(r.weight == 0 for r in rewards):
            raise ValueError("every reward has weight 0, so nothing would be learned; give at least one a weight")
        return rewards

    @model_validator(mode="after")
    def _overlong_buffer_fits(self) -> "RunConfig":
        buffer, limit = self.algorithm.overlong_buffer, self.generation.max_completion_length
        if buffer > limit:
            raise ValueError(
                f"algorithm.overlong_buffer = {buffer} is more than generation.max_completion_length = {limit}, so "
                f"that every completion would be punished; use at most {limit}"
            )
        return self
