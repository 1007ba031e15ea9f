"""`vlmscope reward`: what a reward function says of one completion."""

import argparse
import json
from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue, ValidationError

from training.config import RewardConfig
from training.config.toml import field_errors
from training.errors import ConfigError
from training.images import read_image
from training.rewards import build_rewards


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "reward",
        description="Score one completion by a reward function of the catalogue; exit code 1 when the function fails.",
    )
    parser.add_argument("name", metavar="NAME", help="the reward function")
    parser.add_argument("--completion", required=True, metavar="TEXT")
    parser.add_argument("--answer", metavar="TEXT", help="the gold answer")
    parser.add_argument("--image", action="append", default=[], metavar="PATH", help="may be repeated")
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a column of the row; a value that begins with [ or { is JSON; may be repeated",
    )
    parser.add_argument(
        "--option", action="append", default=[], metavar="KEY=VALUE", help="an option of the function, as JSON"
    )
    parser.add_argument("--json", action="store_true", help="print value, parsed and error as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Raises ConfigError for an unknown reward or option and DatasetError for an image that cannot be read."""
    columns = {"answer": args.answer} | {key: _value(text) for key, text in _pairs("--column", args.column)}
    options = {key: _json(text) for key, text in _pairs("--option", args.option)}
    images = [read_image(path, root=None, where=f"--image {path}") for path in args.image]
    rewards = build_rewards([_config(args.name, options)], max_error_share=1.0)
    [[result]] = rewards.score(
        prompts=[[]], completions=[args.completion], completion_ids=[[]], images=[images], columns=[columns], step=0
    )
    if args.json:
        print(json.dumps({"value": result.value, "parsed": result.parsed, "error": result.error}))
    elif result.error is not None:
        print(f"failed: {result.error}")
    else:
        value = "not scored" if result.value is None else f"{result.value:g}"
        print(value if result.parsed is None else f"{value} (read {result.parsed!r})")
    return 0 if result.error is None else 1


def _config(name: str, options: dict[str, JsonValue]) -> RewardConfig:
    try:
        return RewardConfig(name=name, options=options)
    except ValidationError as error:
        raise ConfigError("; ".join(f"{field}: {message}" for field, message in field_errors(error))) from error


def _pairs(flag: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    pairs = [text.partition("=") for text in texts]
    for key, equals, value in pairs:
        if not key or not equals:
            raise ConfigError(f"{flag} takes KEY=VALUE, got {key + equals + value!r}")
    return [(key, value) for key, _, value in pairs]


def _value(text: str) -> JsonValue:
    return _json(text) if text.startswith(("[", "{")) else text


def _json(text: str) -> JsonValue:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{text!r} is not JSON ({error}); quote it for the shell") from error
