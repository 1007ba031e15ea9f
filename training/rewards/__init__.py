"""Reward functions, free of torch: the catalogue, and the scoring that keeps every failure out of the numbers."""

from training.rewards.catalogue import catalogue
from training.rewards.scoring import RewardSet, build_rewards
from training.rewards.types import RewardInfo, Scored

__all__ = ["RewardInfo", "RewardSet", "Scored", "build_rewards", "catalogue"]
