"""The one shape of every refusal, and what turns each exception into it."""

from collections.abc import Iterable, Sequence
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from app.api.headers import API_HEADERS
from app.runs import AlreadyEnded, KeyReused, NoSuchRun, Refused
from app.store.errors import BadCursor

_LONGEST_MESSAGE = 500
_LONGEST_FIELD = 200
_MOST_FINDINGS = 50


class FindingDocument(BaseModel):
    """One thing that is wrong with a request or a run, or worth knowing."""

    model_config = ConfigDict(from_attributes=True, extra="forbid")

    level: str = Field(default="error", description="error, warning or info; only errors refuse.", examples=["error"])
    field: str = Field(description="Dotted name of the field.", examples=["generation.num_generations"])
    message: str = Field(description="What was expected, what came, what to do.")
    row: int | None = Field(default=None, description="Row of the dataset, when one row is at fault.")


class ErrorDetail(BaseModel):
    """What was refused and why."""

    code: str = Field(description="Short stable word for programs.", examples=["invalid"])
    message: str = Field(description="One sentence for people.")
    findings: list[FindingDocument] = Field(description="One entry a fault, empty when the message says it all.")


class ErrorDocument(BaseModel):
    """The body of every refusal."""

    error: ErrorDetail


class ApiError(HTTPException):
    """A refusal raised by a route or a guard."""

    def __init__(
        self, status: int, code: str, message: str, *, findings: Sequence[FindingDocument] = (), allow: str = ""
    ) -> None:
        super().__init__(status, message, headers={"Allow": allow} if allow else None)
        self.code = code
        self.findings = findings


def invalid(faults: Iterable[tuple[str, str]]) -> ApiError:
    """A 422 that names every field at fault and repeats no input."""
    findings = [FindingDocument(field=field or "body", message=message) for field, message in faults]
    summary = "; ".join(f"{finding.field}: {finding.message}" for finding in findings[:3])
    more = f"; and {len(findings) - 3} more" if len(findings) > 3 else ""
    return ApiError(422, "invalid", summary + more, findings=findings)


def refusal(error: ApiError) -> JSONResponse:
    """The response of a refusal; text is cut and made encodable, as some of it comes from outside."""
    findings = [
        FindingDocument(
            level=finding.level,
            field=_plain(finding.field, _LONGEST_FIELD),
            message=_plain(finding.message, _LONGEST_MESSAGE),
            row=finding.row,
        )
        for finding in error.findings[:_MOST_FINDINGS]
    ]
    detail = ErrorDetail(code=error.code, message=_plain(error.detail, _LONGEST_MESSAGE), findings=findings)
    headers = {**API_HEADERS, **(error.headers or {})}
    return JSONResponse(ErrorDocument(error=detail).model_dump(), status_code=error.status_code, headers=headers)


def _plain(text: str, longest: int) -> str:
    encodable = text.encode("utf-8", errors="replace").decode()
    return encodable if len(encodable) <= longest else encodable[: longest - 1] + "…"


def _from_exception(request: Request, error: Exception) -> ApiError:
    match error:
        case ApiError():
            return error
        case RequestValidationError():
            return invalid((".".join(str(part) for part in e["loc"][1:]), e["msg"]) for e in error.errors())
        case BadCursor():
            return invalid([("after", str(error))])
        case Refused():
            findings = [FindingDocument.model_validate(finding) for finding in error.findings]
            return ApiError(422, "refused", str(error), findings=findings)
        case NoSuchRun():
            return ApiError(404, "not_found", str(error))
        case AlreadyEnded():
            return ApiError(409, "already_ended", str(error))
        case KeyReused():
            return ApiError(409, "key_reused", str(error))
        case HTTPException():
            code = HTTPStatus(error.status_code).name.lower()
            return ApiError(error.status_code, code, f"{request.method} {request.url.path}: {error.detail}")
    return ApiError(500, "internal", "the server failed on this request; its log holds the details")


async def _answer(request: Request, error: Exception) -> Response:
    return refusal(_from_exception(request, error))


def install_errors(app: FastAPI) -> None:
    """Give every refusal of the app the one shape."""
    kinds: tuple[type[Exception], ...] = (
        RequestValidationError,
        HTTPException,
        BadCursor,
        Refused,
        NoSuchRun,
        AlreadyEnded,
        KeyReused,
    )
    for kind in (*kinds, Exception):
        app.add_exception_handler(kind, _answer)
