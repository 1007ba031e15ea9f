"""Options that several subcommands share."""

import argparse

from app.settings import Settings, read_settings


def add_data_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data-dir", metavar="DIR", help="data directory (VLMSCOPE_DATA_DIR; default: .data here)")


def add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="address to listen on (VLMSCOPE_HOST; default: 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on (VLMSCOPE_PORT; default: 7860)")


def settings_of(args: argparse.Namespace) -> Settings:
    """The environment's settings, with this command line's options first.  Raises ConfigError."""
    return read_settings({name: getattr(args, name, None) for name in ("data_dir", "host", "port")})
