"""Servers that several parts test against; each starts when the first test asks for it."""

import os
import shutil
from collections.abc import Iterator

import pytest

from tests.postgresql import postgresql_server, server_binaries


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and shutil.which("nvidia-smi") is None:
        pytest.skip("no CUDA device here")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The maintenance database of a PostgreSQL server on which tests may create databases."""
    given = os.environ.get("VLMSCOPE_TEST_POSTGRES_URL")
    if given:
        yield given
        return
    binaries = server_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL server: neither /usr/lib/postgresql/*/bin nor VLMSCOPE_TEST_POSTGRES_URL")
    with postgresql_server(binaries) as url:
        yield url
