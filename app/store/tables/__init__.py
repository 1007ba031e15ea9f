"""The tables of the store."""

from app.store.tables.base import Base
from app.store.tables.completions import Completion, CompletionBody, CompletionTokens, Group, Reward
from app.store.tables.metrics import Metric, Name, RewardHistogram
from app.store.tables.prompts import Image, RunImage, Sample, SampleImage
from app.store.tables.runs import Checkpoint, LogLine, Run, RunEvent
from app.store.tables.workers import ApiToken, Device, Worker

__all__ = [
    "ApiToken",
    "Base",
    "Checkpoint",
    "Completion",
    "CompletionBody",
    "CompletionTokens",
    "Device",
    "Group",
    "Image",
    "LogLine",
    "Metric",
    "Name",
    "Reward",
    "RewardHistogram",
    "Run",
    "RunEvent",
    "RunImage",
    "Sample",
    "SampleImage",
    "Worker",
]
