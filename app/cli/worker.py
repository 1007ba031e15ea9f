"""`vlmscope worker`: executes queued runs on this machine."""

import argparse
from typing import Any

from app.cli.options import add_data_dir, settings_of
from app.settings import require_redis


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("worker", description="Execute queued runs on this machine.")
    add_data_dir(parser)


def run(args: argparse.Namespace) -> int:
    settings = settings_of(args)
    require_redis(settings)

    from worker.host import run_host

    return run_host(settings)
