"""What a run is, as one torch-free document: form, REST schema, TOML and command line all derive from it."""

from training.config.algorithms import ALGORITHM_CONFIGS, AlgorithmConfig, GRPOConfig, RLOOConfig
from training.config.parameters import ParametersConfig, Part
from training.config.run import RunConfig
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
from training.config.toml import dump_toml, load_toml, read_toml

__all__ = [
    "ALGORITHM_CONFIGS",
    "AlgorithmConfig",
    "CheckpointConfig",
    "DataConfig",
    "EvaluationConfig",
    "GRPOConfig",
    "GenerationConfig",
    "ModelConfig",
    "OptimizationConfig",
    "ParametersConfig",
    "Part",
    "RLOOConfig",
    "ResourcesConfig",
    "RewardConfig",
    "RunConfig",
    "TrackingConfig",
    "dump_toml",
    "load_toml",
    "read_toml",
]
