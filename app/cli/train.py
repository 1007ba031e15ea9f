"""`vlmscope train`: one run in this process; the worker starts its runs with this same command."""

import argparse
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from app.cli.torch_import import import_training
from app.settings import read_settings
from training.config import read_toml
from training.control import SignalControl
from training.datasets import Access
from training.errors import ConfigError, DatasetError, ModelError, VlmscopeError

FINISHED = 0
FAILED = 1
REFUSED = 2
STOPPED = 75  # EX_TEMPFAIL: called again, the run goes on
RUN_MARKER = "VLMSCOPE_RUN"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "train",
        description="Train from a TOML file and leave records, images and checkpoints in DIR. Called again with the "
        "same DIR, it goes on from the newest whole checkpoint. Exit codes: 0 finished, 75 stopped on request after a "
        "checkpoint, 2 configuration, data or model refused, 1 failed.",
    )
    parser.add_argument("config", type=Path, metavar="RUN.toml", help="the run's configuration")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the run's directory, made when missing")
    parser.add_argument("--attempt", type=_positive, metavar="N", help="number of this attempt (default: the next)")
    parser.add_argument("--death-pipe", type=int, metavar="FD", help="stop when this pipe's other end is closed")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="built-in models (VLMSCOPE_CACHE_DIR)")


def run(args: argparse.Namespace) -> int:
    try:
        return _train(args)
    except (ConfigError, DatasetError, ModelError) as error:
        print(f"vlmscope: {error}", file=sys.stderr)
        return REFUSED
    except VlmscopeError:
        traceback.print_exc()
        return FAILED


def _train(args: argparse.Namespace) -> int:
    config = read_toml(args.config)
    control = SignalControl(death_pipe=args.death_pipe)  # before torch: a request during its import counts
    settings = read_settings()
    # a submitted configuration may read the operator's directories only, the owner of this shell may read everything
    access = Access(roots=settings.dataset_roots if RUN_MARKER in os.environ else None)
    outcome = import_training("training.run").run(
        config,
        out=args.out.absolute(),
        attempt=args.attempt,
        control=control,
        cache=(args.cache or settings.cache_dir).absolute(),
        access=access,
    )
    return STOPPED if outcome == "stopped" else FINISHED


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1, got {text}")
    return number
