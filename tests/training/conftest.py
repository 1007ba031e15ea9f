"""What whole runs of tests need: a small model on disk."""

import pytest

from tests.tiny_vlms import tiny_policy
from training.rewards import RewardSet


@pytest.fixture(scope="session")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny SmolVLM that runs load; none of them changes it."""
    path = tmp_path_factory.mktemp("model")
    tiny_policy("smolvlm").save(path)
    return str(path)


@pytest.fixture
def parity_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    """A random model is never right: half of a run's completions are rewarded here, by the parity of their length."""

    def accuracy(completions):
        return [float(len(text) % 2) for text in completions]

    monkeypatch.setattr("training.run.build_rewards", lambda _: RewardSet({"accuracy": accuracy}, [1.0]))
