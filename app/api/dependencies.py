"""What routes ask for by type: the services, a read session, ids, page limits, search text."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, Header, Path, Query, Request
from pydantic import AfterValidator
from sqlalchemy.orm import Session

from app.runs import Services


def _services(request: Request) -> Services:
    return request.app.state.services


ServicesDep = Annotated[Services, Depends(_services)]


def _read_session(services: ServicesDep) -> Iterator[Session]:
    with services.store.read() as session:
        yield session


# closed before the answer is sent: a slow reader of the answer holds no snapshot of the database
ReadSession = Annotated[Session, Depends(_read_session, scope="function")]


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("expected text without NUL")
    return text


Text = Annotated[str, AfterValidator(_without_nul)]

RunId = Annotated[int, Path(description="Id of the run.", ge=1, lt=2**31, examples=[7])]
# an id of a row that belongs to a run is (run << 32) | sequence
RowId = Annotated[int, Path(description="Id of the row.", ge=1, lt=2**63, examples=[30064771073])]
Step = Annotated[int | None, Query(description="Training step, from 1; left out: all steps.", ge=0, lt=2**31)]
Limit = Annotated[int, Query(description="Most items of the answer.", ge=1, le=500)]
After = Annotated[
    Text | None, Query(description="`next` of the page before; left out: the first page.", max_length=400)
]
Search = Annotated[Text | None, Query(description="Words to search for.", max_length=400)]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="A fresh random word per submission: sent again with the same body, it answers with the same run.",
        pattern=r"^[\x21-\x7e]{1,200}$",
    ),
]
