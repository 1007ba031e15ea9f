"""Routes that check, submit, list, show and cancel runs."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.api.bodies import CONFIG_BODY, ConfigBody
from app.api.dependencies import After, IdempotencyKey, Limit, ReadSession, RunId, Search, ServicesDep, Text
from app.api.documents import PageDocument
from app.api.errors import FindingDocument
from app.api.run_documents import CheckDocument, RunDocument, RunOrder, RunSummary
from app.runs import NoSuchRun
from app.store.queries import runs
from app.store.run_writes import Created
from app.store.states import RunState

router = APIRouter(tags=["runs"])


@router.post("/check", summary="Check a configuration", openapi_extra=CONFIG_BODY)
def check(config: ConfigBody, services: ServicesDep) -> CheckDocument:
    """Looks at model, data, images and rewards as a submission does, and stores nothing."""
    findings = [FindingDocument.model_validate(finding) for finding in services.runs.check(config)]
    return CheckDocument(ok=all(finding.level != "error" for finding in findings), findings=findings)


@router.post(
    "/runs",
    summary="Submit a run",
    status_code=201,
    responses={200: {"model": RunOrder, "description": "The same submission came before; this is its run."}},
    openapi_extra=CONFIG_BODY,
)
def submit(config: ConfigBody, services: ServicesDep, response: Response, key: IdempotencyKey = None) -> RunOrder:
    """Checks the configuration and queues it; nothing is stored when a finding is an error."""
    if key is None:
        launched = Created(services.runs.launch(config), created=True)
    else:
        launched = services.runs.launch_once(config, key=key)
    response.status_code = 201 if launched.created else 200
    response.headers["Location"] = f"/api/v1/runs/{launched.run_id}"
    with services.store.read() as session:
        run = runs.get_run(session, launched.run_id)
    return RunOrder(id=str(launched.run_id), state=run.state if run else RunState.QUEUED)


@router.get("/runs", summary="List runs")
def list_runs(
    session: ReadSession,
    state: Annotated[list[RunState] | None, Query(description="Only runs in one of these states.")] = None,
    project: Annotated[Text | None, Query(description="Only runs of this project.", max_length=80)] = None,
    q: Search = None,
    after: After = None,
    limit: Limit = 50,
) -> PageDocument[RunSummary]:
    """Newest first."""
    page = runs.list_runs(session, states=state, project=project, text=q, after=after, limit=limit)
    return PageDocument[RunSummary].model_validate(page)


@router.get("/runs/{run_id}", summary="Show a run")
def show(run_id: RunId, session: ReadSession) -> RunDocument:
    """Its state, progress, configuration, owner and end."""
    run = runs.get_run(session, run_id)
    if run is None:
        raise NoSuchRun(run_id)
    return RunDocument.model_validate(run)


@router.post("/runs/{run_id}/cancel", summary="Cancel a run", status_code=202)
def cancel(run_id: RunId, services: ServicesDep) -> RunOrder:
    """A waiting run is cancelled at once; a running one becomes `cancelling`, checkpoints and ends."""
    return RunOrder(id=str(run_id), state=services.runs.cancel(run_id))
