"""Routes that read what a run left: metrics, events, log lines, groups and completions."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from app.api.completion_documents import CompletionDocument, GroupDocument
from app.api.dependencies import After, Limit, ReadSession, RowId, RunId, Search, Step
from app.api.documents import PageDocument
from app.api.errors import ApiError
from app.api.run_documents import EventDocument, LogLineDocument, MetricsDocument, StepsDocument, TailDocument
from app.runs import NoSuchRun
from app.store.queries import completions, logs, metrics, runs

router = APIRouter(tags=["results"])


def _existing_run(run_id: RunId, session: ReadSession) -> int:
    if not runs.run_exists(session, run_id):
        raise NoSuchRun(run_id)
    return run_id


ExistingRun = Annotated[int, Depends(_existing_run)]
AfterRow = Annotated[int, Query(description="`next` of the answer before; 0: from the first.", ge=0, lt=2**63)]


@router.get("/runs/{run_id}/metrics", summary="Metrics over steps")
def show_metrics(
    run_id: ExistingRun,
    session: ReadSession,
    name: Annotated[list[str] | None, Query(description="Metrics; left out: all.", max_length=200)] = None,
    max_points: Annotated[int, Query(description="Most points a metric.", ge=2, le=10_000)] = 1000,
) -> MetricsDocument:
    """Rewards, loss and everything else that the trainer recorded once a step."""
    names = metrics.metric_names(session, run_id)
    wanted = names if name is None else [known for known in names if known in name]
    return MetricsDocument(names=names, series=metrics.series(session, run_id, wanted, max_points=max_points))


@router.get("/runs/{run_id}/events", summary="Events")
def show_events(
    run_id: ExistingRun, session: ReadSession, after: AfterRow = 0, limit: Limit = 200
) -> TailDocument[EventDocument]:
    """State moves, warnings and alerts, oldest first."""
    rows = [EventDocument.model_validate(row) for row in logs.events(session, run_id, after=after, limit=limit)]
    return TailDocument(items=rows, next=rows[-1].id if rows else str(after))


@router.get("/runs/{run_id}/logs", summary="Log lines")
def show_logs(
    run_id: ExistingRun,
    session: ReadSession,
    after: AfterRow = 0,
    limit: Limit = 500,
    tail: Annotated[bool, Query(description="The last lines instead of the first after `after`.")] = False,
) -> TailDocument[LogLineDocument]:
    """What the training processes printed, oldest first."""
    lines = logs.log_lines(session, run_id, after=after, limit=limit, tail=tail)
    rows = [LogLineDocument.model_validate(line) for line in lines]
    return TailDocument(items=rows, next=rows[-1].id if rows else str(after))


@router.get("/runs/{run_id}/steps", summary="Steps with completions")
def show_steps(run_id: ExistingRun, session: ReadSession) -> StepsDocument:
    """First and last step that have stored completions, and how many do."""
    return StepsDocument.model_validate(completions.steps(session, run_id))


@router.get("/runs/{run_id}/groups", summary="Groups of a run")
def list_groups(
    run_id: ExistingRun,
    session: ReadSession,
    step: Step = None,
    after: After = None,
    limit: Annotated[int, Query(description="Most groups of the answer.", ge=1, le=100)] = 20,
) -> PageDocument[GroupDocument]:
    """Prompts with their images and all completions, each with every reward."""
    page = completions.groups(session, run_id, step=step, after=after, limit=limit)
    return PageDocument[GroupDocument].model_validate(page)


@router.get("/groups/{group_id}", summary="Show a group")
def show_group(group_id: RowId, session: ReadSession) -> GroupDocument:
    """One prompt with all its completions."""
    group = completions.get_group(session, group_id)
    if group is None:
        raise ApiError(404, "not_found", f"there is no group {group_id}; GET /api/v1/runs/RUN/groups lists a run's")
    return GroupDocument.model_validate(group)


@router.get("/runs/{run_id}/completions", summary="Completions of a run")
def list_completions(
    run_id: ExistingRun,
    session: ReadSession,
    step: Step = None,
    q: Search = None,
    sort: Annotated[completions.Sort, Query(description="What orders the list.")] = "step",
    descending: Annotated[bool, Query(description="Largest first.")] = True,
    after: After = None,
    limit: Limit = 50,
) -> PageDocument[CompletionDocument]:
    """Completions one by one, with full-text search and sorting."""
    page = completions.list_completions(
        session, run_id, step=step, query=q, sort=sort, descending=descending, after=after, limit=limit
    )
    return PageDocument[CompletionDocument].model_validate(page)
