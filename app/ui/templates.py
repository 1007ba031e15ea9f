"""Jinja templates with autoescape on: what a model wrote is hostile text."""

from datetime import datetime
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

_ENVIRONMENT = Environment(
    loader=PackageLoader("app.ui", "assets"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(template: str, **values: Any) -> str:
    """HTML of one of the templates in `assets`."""
    return _ENVIRONMENT.get_template(template).render(**values)


def stylesheet() -> str:
    return (files("app.ui") / "assets" / "style.css").read_text(encoding="utf-8")


def number(value: float | None, digits: int = 3) -> str:
    """A number for reading; a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}"


def signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.2f}"


def duration(start: datetime | None, end: datetime | None) -> str:
    """Like 1 h 03 min or 42 s; a dash before the start."""
    if start is None or end is None:
        return "–"
    seconds = max(int((end - start).total_seconds()), 0)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes} min {seconds:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def sparkline(values: list[float]) -> str:
    """Points of an SVG polyline in a box of 100 x 24."""
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return " ".join(
        f"{100 * i / (len(values) - 1):.1f},{22 - 20 * (value - low) / span:.1f}" for i, value in enumerate(values)
    )


def prompt_blocks(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """A chat as (role, text), images as a sign in their place."""
    blocks = []
    for message in messages:
        content = message.get("content", "")
        if isinstance(content, list):
            content = "".join(
                "[image] " if part.get("type") == "image" else str(part.get("text", "")) for part in content
            )
        blocks.append((str(message.get("role", "")), str(content)))
    return blocks


_ENVIRONMENT.filters.update(number=number, signed=signed, sparkline=sparkline, prompt_blocks=prompt_blocks)
_ENVIRONMENT.globals["duration"] = duration
