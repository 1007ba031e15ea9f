"""Where this installation keeps its data and what it listens on: VLMSCOPE_* variables, checked at start."""

import ipaddress
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from training.errors import ConfigError

PREFIX = "VLMSCOPE_"


def default_data_dir() -> Path:
    """`.data` in the current directory, or the user's data directory where that cannot be written."""
    here = Path.cwd() / ".data"
    if os.access(here if here.exists() else here.parent, os.W_OK | os.X_OK):
        return here
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "vlmscope"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "vlmscope"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens on `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Settings(BaseSettings):
    """What an operator sets once per installation; what defines a run stands in RunConfig.

    Example: `VLMSCOPE_PORT=8000 VLMSCOPE_DATASET_ROOTS=/data/sets:/mnt/images vlmscope up`.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        validate_default=True,
        hide_input_in_errors=True,  # URLs hold passwords
    )

    data_dir: Path = Field(
        default_factory=default_data_dir,
        description="Database, images, run directories and caches. Default: .data in the current directory.",
    )
    database_url: str = Field(
        default_factory=lambda data: f"sqlite:///{data['data_dir'] / 'vlmscope.sqlite3'}",
        repr=False,
        description="SQLAlchemy URL of a SQLite or PostgreSQL database. Default: a SQLite file in the data directory.",
    )
    redis_url: str | None = Field(
        None, repr=False, description="Redis or Valkey server of the queue; `vlmscope up` starts its own without it."
    )
    host: str = Field("127.0.0.1", min_length=1, description="Address that the web server listens on.")
    port: int = Field(7860, ge=1, le=65_535, description="Port of the web server.")
    allow_remote: bool = Field(
        False, description="Allows a host that others can reach, although whoever reaches it can start runs."
    )
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Further names, separated by commas, under which browsers may reach the server."
    )
    dataset_roots: Annotated[tuple[Path, ...], NoDecode] = Field(
        default_factory=lambda data: (data["data_dir"] / "datasets", Path.cwd()),
        description="Directories, separated by colons, that hold datasets, images and models. "
        "Default: datasets in the data directory, and the current directory.",
    )
    cache_dir: Path = Field(
        default_factory=lambda data: data["data_dir"] / "cache", description="Built-in models, made at first use."
    )

    @property
    def runs_dir(self) -> Path:
        """Holds one directory per run, named by its id."""
        return self.data_dir / "runs"

    def environment(self) -> dict[str, str]:
        """The variables that give a child process these same settings."""
        separators = {"allowed_hosts": ",", "dataset_roots": os.pathsep}
        variables: dict[str, str] = {}
        for name, value in self:
            if value is not None:
                separator = separators.get(name)
                variables[f"{PREFIX}{name.upper()}"] = separator.join(map(str, value)) if separator else str(value)
        return variables

    @field_validator("data_dir", "cache_dir")
    @classmethod
    def _absolute(cls, path: Path) -> Path:
        return path.expanduser().absolute()

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _split_names(cls, value: Any) -> Any:
        return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value

    @field_validator("dataset_roots", mode="before")
    @classmethod
    def _split_paths(cls, value: Any) -> Any:
        return [part for part in value.split(os.pathsep) if part] if isinstance(value, str) else value

    @field_validator("dataset_roots")
    @classmethod
    def _resolved(cls, paths: tuple[Path, ...]) -> tuple[Path, ...]:
        return tuple(path.expanduser().resolve() for path in paths)

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, url: str) -> str:
        if url.partition(":")[0] not in ("sqlite", "postgresql", "postgresql+psycopg"):
            raise ValueError("expected sqlite:///FILE or postgresql+psycopg://USER:PASSWORD@HOST/NAME")
        return url

    @field_validator("redis_url")
    @classmethod
    def _known_broker(cls, url: str | None) -> str | None:
        if url is not None and url.partition("://")[0] not in ("redis", "rediss"):
            raise ValueError("expected redis://:PASSWORD@HOST:PORT/0 (rediss:// with TLS)")
        return url

    @model_validator(mode="after")
    def _remote_access_is_meant(self) -> "Settings":
        if not is_loopback(self.host) and not self.allow_remote:
            raise ValueError(
                f"{PREFIX}HOST (--host) = {self.host} can be reached from other machines, and there is no login yet: "
                f"whoever reaches it can start runs and read all results. Use 127.0.0.1 and an SSH tunnel, or set "
                f"{PREFIX}ALLOW_REMOTE=1 where the network itself keeps others out"
            )
        return self


def read_settings(overrides: Mapping[str, Any] | None = None) -> Settings:
    """Settings from the environment; `overrides` that are not None go first.  Raises ConfigError that names each."""
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        raise ConfigError("; ".join(_refusals(error))) from error


def require_redis(settings: Settings) -> str:
    """The queue's URL.  Raises ConfigError when there is none, which is right for `vlmscope up` alone."""
    if settings.redis_url is None:
        raise ConfigError(
            f"no queue: set {PREFIX}REDIS_URL to a Redis or Valkey server, such as redis://:PASSWORD@HOST:6379/0, or "
            f"start `vlmscope up`, which brings its own"
        )
    return settings.redis_url


def _refusals(error: ValidationError) -> list[str]:
    lines: list[str] = []
    for e in error.errors(include_url=False, include_context=False, include_input=False):
        if e["type"] == "default_factory_not_called":  # follows from another field's refusal
            continue
        name = ".".join(str(part) for part in e["loc"][:1]).upper()
        message = e["msg"].removeprefix("Value error, ")
        lines.append(f"{PREFIX}{name}: {message}" if name else message)
    return lines
