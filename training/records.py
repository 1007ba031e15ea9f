"""What a run leaves behind, as documents: one JSON line each in the run's record files, for store, viewer and scripts.

A run's records are `DIR/records/attempt-0001.jsonl`, `attempt-0002.jsonl`, ... in that order.  Every file begins with a
StartRecord; when its `resumed_from_step` is S, all earlier StepRecords and EvalRecords with a step above S are void
(they are made again).  Images lie beside them as `DIR/images/<sha256>.<format>`, once each, with their original bytes.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

FinishReason = Literal["stop", "length"]
Level = Literal["info", "warning", "error"]


class Record(BaseModel):
    """Base of all records.  Numbers are finite: what is not finite stands as None with a reason beside it."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ImageRecord(Record):
    """An image that a prompt shows; its bytes lie in `images/<sha256>.<format>`."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    width: int
    height: int
    format: Literal["png", "jpeg", "webp", "gif"]
    bytes: int


class SampleRecord(Record):
    """One dataset row as a prompt.  `key` is a content hash: the same prompt has the same key in every run."""

    key: str = Field(pattern=r"^[0-9a-f]{64}$")
    row: int = Field(description="Index of the row in its split.")
    messages: list[dict[str, JsonValue]] = Field(
        description='Chat messages; an image block is {"type": "image"}, in the order of `images`.'
    )
    images: list[ImageRecord]
    columns: dict[str, JsonValue] = Field(description="The row's other columns, the gold answer under `answer`.")


class RewardValue(Record):
    """What one reward function said of one completion: a value, or None when unscored or failed."""

    name: str
    value: float | None
    error: str | None = Field(default=None, description="Why there is no value, when the function failed.")
    parsed: str | None = Field(default=None, description="What the function read from the completion.")


class CompletionRecord(Record):
    """One sampled completion with everything that is known of it."""

    index: int = Field(description="Place in the group, from 0.")
    text: str
    num_tokens: int = Field(description="Tokens, the end-of-sequence token included.")
    finish_reason: FinishReason
    rewards: list[RewardValue]
    reward: float | None = Field(description="Weighted sum of the scored rewards; None when nothing was scored.")
    advantage: float
    tokens: str | None = Field(default=None, description="Packed token statistics, see training.token_stats.")


class GroupRecord(Record):
    """All completions of one prompt at one step."""

    sample: SampleRecord
    completions: list[CompletionRecord]


class StartRecord(Record):
    """First line of an attempt's file."""

    kind: Literal["start"] = "start"
    attempt: int
    resumed_from_step: int | None = None
    max_steps: int
    time: float = Field(description="Seconds since the epoch; so in every record.")


class PhaseRecord(Record):
    """The run enters a phase: loading, warm start, evaluating, training, saving."""

    kind: Literal["phase"] = "phase"
    name: str
    detail: str = ""
    max_steps: int | None = Field(default=None, description="Steps of the run, where only the data could tell.")
    time: float


class EventRecord(Record):
    """Something a person should know: a fallback, a skipped update, a mirror that failed."""

    kind: Literal["event"] = "event"
    level: Level = "info"
    code: str = Field(description="Short stable word, such as shared_path_fallback.")
    message: str
    time: float


class StepRecord(Record):
    """One training step: its metrics under TRL's names and every completion.  Steps count from 1."""

    kind: Literal["step"] = "step"
    step: int
    metrics: dict[str, float]
    groups: list[GroupRecord]
    time: float


class EvalRecord(Record):
    """A greedy evaluation after `step` steps (0 is before training): metric names begin with eval_."""

    kind: Literal["eval"] = "eval"
    step: int
    metrics: dict[str, float]
    time: float


class CheckpointRecord(Record):
    """A whole checkpoint stands on disk."""

    kind: Literal["checkpoint"] = "checkpoint"
    step: int
    path: str = Field(description="Relative to the run's directory.")
    bytes: int
    time: float


class ResultRecord(Record):
    """Last line of an attempt that ended on its own."""

    kind: Literal["result"] = "result"
    outcome: Literal["finished", "stopped", "failed"]
    step: int
    message: str = ""
    model_path: str | None = Field(default=None, description="The trained model, relative to the run's directory.")
    time: float


AnyRecord = Annotated[
    StartRecord | PhaseRecord | EventRecord | StepRecord | EvalRecord | CheckpointRecord | ResultRecord,
    Field(discriminator="kind"),
]

_ADAPTER: TypeAdapter[AnyRecord] = TypeAdapter(AnyRecord)


def parse_record(line: str | bytes) -> AnyRecord:
    """Read one line of a record file.  Raises pydantic.ValidationError."""
    return _ADAPTER.validate_json(line)
