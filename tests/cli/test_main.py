"""The command itself: help at once, unknown words, exit codes."""

from pathlib import Path

import pytest

from app.cli import COMMANDS
from tests.cli.command import HEAVY, loaded, message, vlmscope


def test_help_lists_every_command_and_imports_nothing_heavy(tmp_path: Path) -> None:
    done = vlmscope("--help", folder=tmp_path)
    assert done.returncode == 0
    assert not loaded(done) & set(HEAVY)
    for name, summary in COMMANDS.items():
        assert name in done.stdout
        assert summary.split(":")[0] in " ".join(done.stdout.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_imports_neither_torch_nor_web_nor_database(name: str, tmp_path: Path) -> None:
    done = vlmscope(name, "--help", folder=tmp_path)
    assert (done.returncode, message(done)) == (0, "")
    assert done.stdout.startswith(f"usage: vlmscope {name} ")
    assert not loaded(done) & {"torch", "transformers", "gradio", "fastapi", "sqlalchemy", "celery"}


@pytest.mark.parametrize("arguments", [[], ["explode"], ["up", "--explode"], ["train"], ["train", "run.toml"]])
def test_words_that_make_no_command_exit_2_with_the_usage(arguments: list[str], tmp_path: Path) -> None:
    done = vlmscope(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert message(done).startswith("usage: vlmscope")
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["web", "worker"])
def test_web_and_worker_without_a_queue_are_refused_with_the_remedy(name: str, tmp_path: Path) -> None:
    done = vlmscope(name, folder=tmp_path)
    assert done.returncode == 2
    assert message(done).startswith("vlmscope: no queue: set VLMSCOPE_REDIS_URL")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["up", "web"])
def test_open_address_is_refused(name: str, tmp_path: Path) -> None:
    done = vlmscope(name, "--host", "0.0.0.0", folder=tmp_path)
    assert done.returncode == 2
    assert message(done).startswith("vlmscope: VLMSCOPE_HOST (--host) = 0.0.0.0 can be reached from other machines")
    assert list(tmp_path.iterdir()) == []
