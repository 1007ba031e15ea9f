"""The `vlmscope` command: one module per subcommand; only the one that is asked for is imported."""

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence

from training.errors import VlmscopeError

COMMANDS = {
    "up": "start everything on this machine: database, queue, worker, dashboard",
    "web": "serve the dashboard and the REST API",
    "worker": "execute queued runs",
    "train": "train from a TOML file, without server, queue or database",
    "export": "write the model of a run's checkpoint for other programs",
    "check": "check a TOML file: model, data, images, rewards",
    "reward": "try a reward function on one completion",
    "migrate": "bring the database's schema up to date",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="vlmscope", description="Launch and inspect reinforcement-learning runs of vision-language models."
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    chosen = arguments[0] if arguments and arguments[0] in COMMANDS else None
    for name, summary in COMMANDS.items():
        if name != chosen:  # a name for the list: help must not wait for what the command imports
            subparsers.add_parser(name, help=summary)
    if chosen is None:
        parser.parse_args(arguments)  # prints help or a refusal and exits
        return 2
    module = importlib.import_module(f"app.cli.{chosen}")
    module.add_parser(subparsers)
    return _run(module.run, parser.parse_args(arguments))


def _run(command: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """0 done, 1 failed, 2 refused for what the user gave, 130 interrupted."""
    try:
        return command(args)
    except VlmscopeError as error:
        print(f"vlmscope: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    except KeyboardInterrupt:
        return 130
