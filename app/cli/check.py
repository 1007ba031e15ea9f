"""`vlmscope check`: what a submission would say, without submitting."""

import argparse
from pathlib import Path
from typing import Any

from training.config import read_toml
from training.datasets import Access
from training.preflight import check


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "check", description="Check model, data, images and rewards of a run; exit code 2 when it cannot work."
    )
    parser.add_argument("config", type=Path, metavar="RUN.toml", help="the run's configuration")


def run(args: argparse.Namespace) -> int:
    findings = check(read_toml(args.config), access=Access(roots=None))
    for finding in findings:
        row = "" if finding.row is None else f" row {finding.row}"
        print(f"{finding.level}: {finding.field}{row}: {finding.message}")
    if any(finding.level == "error" for finding in findings):
        return 2
    print(f"{args.config}: this run can start")
    return 0
