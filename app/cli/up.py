"""`vlmscope up`: everything on this machine."""

import argparse
from typing import Any

from app.cli.options import add_address, add_data_dir, settings_of
from training.errors import ConfigError
from training.presets import load_preset

DEFAULT_PRESET = "demo-color-grpo"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "up",
        description="Start database, queue, worker and dashboard. Ctrl-C stops all; a run under way goes on next time.",
    )
    add_data_dir(parser)
    add_address(parser)
    parser.add_argument("--demo", action="store_true", help="submit a demo run and show its progress")
    parser.add_argument("--preset", metavar="NAME", help=f"which demo run, implies --demo (default: {DEFAULT_PRESET})")
    parser.add_argument("--exit", action="store_true", help="end with the demo run and print one JSON line about it")


def run(args: argparse.Namespace) -> int:
    from app.up.run import Order
    from app.up.run import run as run_installation

    demo = load_preset(args.preset or DEFAULT_PRESET) if args.demo or args.preset else None
    if args.exit and demo is None:
        raise ConfigError("--exit ends with the demo run, and there is none: add --demo")
    outcome = run_installation(settings_of(args), Order(demo=demo, exit_at_end=args.exit))
    if outcome.summary is not None:
        print(outcome.summary.json())
    return outcome.exit_code
