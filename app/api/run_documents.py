"""Runs, their events, log lines and metrics as REST shows them."""

from datetime import datetime
from typing import Generic

from pydantic import Field

from app.api.documents import Document, Id, Item
from app.api.errors import FindingDocument
from app.store.states import RunState
from training.config import RunConfig


class RunSummary(Document):
    """A run as lists show it."""

    id: Id = Field(examples=["7"])
    name: str = Field(examples=["colours"])
    project: str = Field(examples=["default"])
    tags: list[str]
    state: RunState
    phase: str | None = Field(description="What a running run does: loading, warm start, training ...")
    reason: str | None = Field(description="Why the run is in this state.")
    step: int = Field(description="Last finished training step.")
    max_steps: int
    reward: float | None = Field(description="Mean reward of the last step.")
    reward_first: float | None = Field(description="Mean reward of the first step.")
    attempt: int = Field(description="How often a worker has taken it.")
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    created_by: str | None
    sparkline: list[float] = Field(description="Mean rewards over the steps, thinned out.")


class EvalDocument(Document):
    """One evaluation: after which step, and its metrics."""

    step: int
    metrics: dict[str, float] = Field(examples=[{"eval_accuracy": 0.93}])


class RunDocument(RunSummary):
    """A run with its configuration, owner and end."""

    config: RunConfig
    phase_detail: str | None
    progress_at: datetime | None = Field(description="When the last record came in.")
    worker: str | None = Field(description="Worker that holds or held it.")
    host: str | None
    lease_expires_at: datetime | None = Field(description="The worker counts as lost unless it is heard of before.")
    cancel_requested_at: datetime | None
    exit_code: int | None = Field(description="Of the last training process.")
    exit_signal: int | None
    model_path: str | None = Field(description="The trained model, relative to the run's directory.")
    completions: int = Field(description="Stored completions.")
    images: int = Field(description="Distinct images of its prompts.")
    evals: list[EvalDocument] = Field(description="The first and the newest evaluation on held-out rows.")


class RunOrder(Document):
    """What became of a request about a run."""

    id: Id = Field(examples=["7"])
    state: RunState


class CheckDocument(Document):
    """What preflight found; `ok` is False when a finding is an error."""

    ok: bool
    findings: list[FindingDocument]


class EventDocument(Document):
    """A state move, a warning, an alert."""

    id: Id
    time: datetime
    level: str = Field(examples=["warning"])
    code: str = Field(description="Short stable word.", examples=["shared_path_fallback"])
    message: str
    step: int | None


class LogLineDocument(Document):
    """One line that the training process printed."""

    id: Id
    attempt: int
    text: str


class TailDocument(Document, Generic[Item]):
    """A list that grows at its end."""

    items: list[Item]
    next: str = Field(description="Pass it as `after`, now or later, to get what came since.")


class MetricsDocument(Document):
    """Metrics over steps, thinned out to at most `max_points` points each."""

    names: list[str] = Field(description="All metrics of the run.")
    series: dict[str, list[tuple[int, float]]] = Field(
        description="Points (step, value) of the metrics asked for.", examples=[{"reward": [[1, 0.25], [2, 0.31]]}]
    )


class StepsDocument(Document):
    """Steps that have stored completions."""

    first: int | None
    last: int | None
    count: int
