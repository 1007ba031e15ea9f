"""Runs the command line in a fresh interpreter."""

import os
import subprocess
import sys
from pathlib import Path

HEAVY = ("torch", "transformers", "gradio", "fastapi", "sqlalchemy", "celery", "redis", "pydantic")

_RUN = """
import sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None  # an import of it fails, as where it is not installed
sys.argv = ["vlmscope", *sys.argv[2:]]
from app.cli import main
try:
    code = main()
finally:
    print("loaded:", *sorted(name for name in sys.modules if sys.modules[name] is not None), file=sys.stderr)
sys.exit(code)
"""


def vlmscope(
    *arguments: object, folder: Path, without: tuple[str, ...] = ("",), environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`vlmscope ARGUMENTS` in `folder`, where the modules named in `without` cannot be imported."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VLMSCOPE_")}
    return subprocess.run(
        [sys.executable, "-c", _RUN, ",".join(without), *map(str, arguments)],
        cwd=folder,
        env={**kept, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=120,
    )


def loaded(done: subprocess.CompletedProcess[str]) -> set[str]:
    """Modules that the command had imported at its end."""
    return set(done.stderr.rpartition("loaded:")[2].split())


def message(done: subprocess.CompletedProcess[str]) -> str:
    """What the command said on stderr."""
    return done.stderr.rpartition("loaded:")[0].strip()
