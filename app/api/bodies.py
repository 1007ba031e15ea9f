"""Reads a run's configuration from a JSON or TOML body; whatever the bytes are, the answer is a config or a refusal."""

from typing import Annotated, Any

from fastapi import Depends, Request
from pydantic import ValidationError

from app.api.errors import ApiError, invalid
from training.config import RunConfig, load_toml
from training.config.toml import field_errors
from training.errors import ConfigError

JSON = "application/json"
TOML = "application/toml"

_SCHEMA = {"$ref": "#/components/schemas/RunConfig"}
CONFIG_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "A RunConfig as JSON or TOML; every field that is left out has its default.",
        "content": {
            JSON: {
                "schema": _SCHEMA,
                "example": {
                    "name": "colours",
                    "model": {"path": "demo-color"},
                    "data": {"source": "easy-vqa", "subset": "color"},
                    "rewards": [{"name": "accuracy"}],
                    "algorithm": {"name": "grpo"},
                },
            },
            TOML: {
                "schema": {"type": "string"},
                "example": '[model]\npath = "demo-color"\n\n[algorithm]\nname = "rloo"\n',
            },
        },
    }
}
"""OpenAPI of a route that takes a ConfigBody: the body is read by hand, so FastAPI cannot see it."""


async def _read(request: Request) -> tuple[str, bytes]:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in (JSON, TOML):
        came = f"got {media_type}" if media_type else "the request has none"
        raise ApiError(415, "unsupported_media_type", f"expected Content-Type {JSON} or {TOML}, {came}")
    return media_type, await request.body()


def _parse(body: Annotated[tuple[str, bytes], Depends(_read)]) -> RunConfig:
    # not a coroutine: a large body is parsed in a thread and holds up nobody
    media_type, data = body
    return _parse_json(data) if media_type == JSON else _parse_toml(data)


def _parse_json(data: bytes) -> RunConfig:
    try:
        return RunConfig.model_validate_json(data)
    except ValidationError as error:
        if error.errors(include_url=False, include_context=False)[0]["type"] == "json_invalid":
            raise ApiError(400, "not_json", str(error.errors()[0]["msg"])) from None
        raise invalid(field_errors(error)) from None


def _parse_toml(data: bytes) -> RunConfig:
    try:
        return load_toml(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ApiError(400, "not_toml", f"TOML is UTF-8, byte {error.start} of the body is not") from None
    except ConfigError as error:
        if isinstance(error.__cause__, ValidationError):
            raise invalid(field_errors(error.__cause__)) from None
        raise ApiError(400, "not_toml", str(error)) from None


ConfigBody = Annotated[RunConfig, Depends(_parse)]
