"""`vlmscope migrate`: brings the database's schema up to date."""

import argparse
from typing import Any

from app.cli.options import add_data_dir, settings_of


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "migrate",
        description="Bring the database's schema up to date; `vlmscope up` and `vlmscope web` do so too.",
    )
    add_data_dir(parser)


def run(args: argparse.Namespace) -> int:
    from app.store import migrate

    settings = settings_of(args)
    migrate.upgrade(settings.database_url)
    print("the database is up to date")
    return 0
