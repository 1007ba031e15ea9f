"""Where the repository lies and which files belong to it."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("app", "worker", "training", "migrations")


def files() -> list[Path]:
    """Every file of the repository, relative to its root: what git tracks or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return sorted({Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()})


def python_files(*folders: str) -> list[Path]:
    """The Python files of some top-level folders, relative to the root."""
    return [path for path in files() if path.suffix == ".py" and path.parts[0] in folders]


def with_block(text: str, name: str, content: str) -> str:
    """A document's text with what stands between `<!-- name -->` and `<!-- /name -->` replaced."""
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    head, rest = text.split(begin)
    _, tail = rest.split(end)
    return head + begin + content + end + tail
