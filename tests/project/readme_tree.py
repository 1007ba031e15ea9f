"""The README's tree, made from docstrings and comments: `python -m tests.project.readme_tree` writes it anew."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from tests.project.repository import PACKAGES, ROOT, files, with_block

README = ROOT / "README.md"

# files and folders that cannot say themselves what they are
SUMMARIES = {
    ".ci/run": "what runs on every change: system packages, then make test",
    ".gitignore": "what git leaves out",
    "Dockerfile": "two images: web (no torch) and worker",
    "LICENSE": "Apache-2.0",
    "Makefile": "make demo, make test, make lint, make clean",
    "README.md": "this page",
    "app/ui/assets": "style sheet and scripts of the pages",
    "compose.yaml": "web, worker, PostgreSQL and Redis on one host",
    "docs": "architecture, configuration, deployment",
    "migrations/script.py.mako": "template of a new migration",
    "pyproject.toml": "dependencies and the settings of every tool",
    "training/demo/presets": "the demo runs, one TOML file each",
}
OWN_WORDS = {
    ".toml": re.compile(r'^name = "(.+)"', re.M),
    ".css": re.compile(r"\A/\* *(.+?) *\*/", re.S),
    ".html": re.compile(r"\A\{# *(.+?) *#\}", re.S),
    ".js": re.compile(r"\A// *(.+)"),
}


def summary(path: Path) -> str | None:
    """One line on a file or folder: the first of its docstring, its first comment, or its name."""
    if path.as_posix() in SUMMARIES:
        return SUMMARIES[path.as_posix()]
    source = path / "__init__.py" if (ROOT / path).is_dir() else path
    text = (ROOT / source).read_text(encoding="utf-8") if (ROOT / source).exists() else ""
    if source.suffix == ".py":
        found = ast.get_docstring(ast.parse(text))
    else:
        match = OWN_WORDS[source.suffix].search(text) if source.suffix in OWN_WORDS else None
        found = match[1] if match else None
    return found.splitlines()[0].rstrip(".") if found else None


def tree(paths: Iterable[Path]) -> str:
    """The tree of a repository's files: one line a file in the packages, one line a folder elsewhere.

    Raises ValueError that names every file and folder that does not say what it is.
    """
    entries: set[Path] = set()
    for path in paths:
        folders = list(path.parents)[:-1]
        if path.parts[0] in PACKAGES:
            entries.update(folders)
            if path.name != "__init__.py":  # its docstring is the folder's line
                entries.add(path)
        elif path.parts[0] == "tests":
            entries.update(folders)
        else:
            entries.add(path if path.parts[0].startswith(".") else Path(path.parts[0]))
    order = sorted(entries, key=lambda path: [(not (ROOT / p).is_dir(), p.name) for p in _trail(path)])
    lines = [(_label(path), summary(path)) for path in order]
    silent = [str(path) for path, (_, text) in zip(order, lines, strict=True) if not text]
    if silent:
        raise ValueError(f"expected a docstring or first comment, or a line in SUMMARIES, for: {', '.join(silent)}")
    width = max(len(label) for label, _ in lines) + 2
    return "".join(f"{label:<{width}}{text}\n" for label, text in lines)


def _trail(path: Path) -> list[Path]:
    return [*reversed(list(path.parents)[:-1]), path]


def _label(path: Path) -> str:
    if path.parts[0].startswith("."):
        return path.as_posix()
    return "  " * (len(path.parts) - 1) + path.name + ("/" if (ROOT / path).is_dir() else "")


def with_tree(readme: str) -> str:
    """The README's text with its tree block replaced by the present tree."""
    return with_block(readme, "tree", f"```text\n{tree(files())}```\n")


if __name__ == "__main__":
    README.write_text(with_tree(README.read_text(encoding="utf-8")), encoding="utf-8")
