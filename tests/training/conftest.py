"""What whole runs of tests need: a small model on disk."""

import pytest

from tests.tiny_vlms import tiny_policy


@pytest.fixture(scope="session")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny SmolVLM that runs load; none of them changes it."""
    path = tmp_path_factory.mktemp("model")
    tiny_policy("smolvlm").save(path)
    return str(path)
