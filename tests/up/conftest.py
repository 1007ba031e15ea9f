"""A marker of its own for every test: whatever carries it afterwards was left running."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.processes import kill_marked
from app.up.tree import MARKER


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path)
    kill_marked(MARKER, str(tmp_path))
