"""`vlmscope export`: a checkpoint of a run as a model directory that other programs open."""

import argparse
from pathlib import Path
from typing import Any

from app.cli.torch_import import import_training
from app.settings import read_settings
from training.datasets import Access
from training.errors import ConfigError


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "export",
        description="Write PATH/model, a plain model directory with its processor, from a checkpoint of a run. "
        "Adapters are merged into the weights, and written to PATH/adapter on their own.",
    )
    parser.add_argument("run_dir", type=Path, metavar="DIR", help="the run's directory, which holds checkpoints/")
    parser.add_argument("--checkpoint", type=int, metavar="STEP", help="step of the checkpoint (default: the newest)")
    parser.add_argument("--out", type=Path, required=True, metavar="PATH", help="directory to write, made when missing")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="built-in models (VLMSCOPE_CACHE_DIR)")


def run(args: argparse.Namespace) -> int:
    if (args.out / "model").exists():
        raise ConfigError(f"{args.out / 'model'} is there already; remove it, or name another --out")
    step = import_training("training.export").export_checkpoint(
        args.run_dir.absolute(),
        args.out.absolute(),
        step=args.checkpoint,
        cache=(args.cache or read_settings().cache_dir).absolute(),
        access=Access(roots=None),
    )
    print(f"{args.out / 'model'}: the model after step {step}")
    return 0
