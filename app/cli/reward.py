"""`vlmscope reward`: what a reward function says of one completion."""

import argparse
import json
from pathlib import Path
from typing import Any

from training.config import RewardConfig
from training.errors import ConfigError
from training.images import read_image
from training.rewards import build_rewards


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("reward", description="Score one completion by a reward function of the catalogue.")
    parser.add_argument("name", metavar="NAME", help="the reward function")
    parser.add_argument("--completion", required=True, metavar="TEXT")
    parser.add_argument("--answer", metavar="TEXT", help="the gold answer")
    parser.add_argument("--image", type=Path, action="append", default=[], metavar="PATH", help="may be repeated")
    parser.add_argument("--column", action="append", default=[], metavar="KEY=VALUE", help="a column of the row")
    parser.add_argument("--json", action="store_true", help="print value, parsed and error as one JSON object")


def run(args: argparse.Namespace) -> int:
    columns: dict[str, str | None] = {"answer": args.answer}
    for text in args.column:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--column takes KEY=VALUE, got {text!r}")
        columns[key] = value
    images = [read_image(str(path.absolute()), root=None, where=f"--image {path}") for path in args.image]
    [[result]] = build_rewards([RewardConfig(name=args.name)]).score(
        prompts=[[]],
        completions=[args.completion],
        completion_ids=[[]],
        images=[images],
        columns=[columns],
        step=0,
    )
    if args.json:
        print(json.dumps({"value": result.value, "parsed": result.parsed, "error": result.error}))
    else:
        print(result.error or ("not scored" if result.value is None else result.value))
    return 1 if result.error else 0
