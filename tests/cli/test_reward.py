"""`vlmscope reward`: one completion, one value, without torch."""

import json
from pathlib import Path

from tests.cli.command import loaded, message, vlmscope
from tests.training.pictures import plain_picture


def test_a_reward_prints_value_and_what_it_read_as_json(tmp_path: Path) -> None:
    done = vlmscope(
        "reward", "accuracy", "--completion", "<answer>Red</answer>", "--answer", "red", "--json", folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"value": 1.0, "parsed": "Red", "error": None}
    assert not loaded(done) & {"torch", "gradio", "sqlalchemy", "pyarrow"}


def test_a_reward_prints_for_people_too(tmp_path: Path) -> None:
    done = vlmscope("reward", "accuracy", "--completion", "blue", "--answer", "red", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "0 (read 'blue')\n")
    done = vlmscope("reward", "format_answer", "--completion", "blue", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "0\n")


def test_without_a_gold_answer_nothing_is_scored(tmp_path: Path) -> None:
    done = vlmscope("reward", "accuracy", "--completion", "blue", "--json", folder=tmp_path)
    assert json.loads(done.stdout) == {"value": None, "parsed": "blue", "error": None}
    assert done.returncode == 0


def test_columns_options_and_images_are_taken(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(plain_picture())
    done = vlmscope(
        *("reward", "choice", "--completion", "dog", "--answer", "B"),
        *("--column", 'options=["cat", "dog"]', "--image", "a.png", "--json"),
        folder=tmp_path,
    )
    assert json.loads(done.stdout)["value"] == 1.0
    done = vlmscope(
        *("reward", "numeric", "--completion", "11", "--answer", "10", "--option", "absolute_tolerance=1", "--json"),
        folder=tmp_path,
    )
    assert json.loads(done.stdout)["value"] == 1.0


def test_what_cannot_be_used_exits_2_and_says_what_to_do(tmp_path: Path) -> None:
    cases = {
        ("acuracy", "--completion", "a"): "did you mean 'accuracy'?",
        ("accuracy", "--completion", "a", "--image", "gone.png"): "there is no file",
        ("accuracy", "--completion", "a", "--column", "plain"): "--column takes KEY=VALUE, got 'plain'",
        ("numeric", "--completion", "1", "--option", "absolute_tolerance=x"): "is not JSON",
        ("numeric", "--completion", "1", "--option", "tolerance=1"): "absolute_tolerance",
    }
    for arguments, said in cases.items():
        done = vlmscope("reward", *arguments, folder=tmp_path)
        assert done.returncode == 2, arguments
        assert said in message(done)
