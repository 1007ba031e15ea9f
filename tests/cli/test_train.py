"""`vlmscope train`: refusals before torch is imported, exit codes."""

from pathlib import Path

import pytest

from tests.cli.command import loaded, message, vlmscope

GOOD = '[optimization]\nmax_steps = 1\n\n[model]\npath = "demo-color"\n'


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(GOOD)
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[optimization", "not valid TOML"),
        (
            "[generation]\nnum_generations = 1\n",
            "generation.num_generations: Input should be greater than or equal to 2",
        ),
        ("colour = 1\n", "colour: Extra inputs are not permitted"),
    ],
)
def test_bad_configuration_exits_2_before_torch_is_imported(
    text: str, expected: str, config: Path, tmp_path: Path
) -> None:
    config.write_text(text)
    done = vlmscope("train", config, "--out", tmp_path / "out", folder=tmp_path)
    assert done.returncode == 2
    assert message(done).splitlines()[-1].startswith(f"vlmscope: {expected}")
    assert "torch" not in loaded(done)
    assert not (tmp_path / "out").exists()


def test_missing_file_exits_2(tmp_path: Path) -> None:
    done = vlmscope("train", "none.toml", "--out", "out", folder=tmp_path)
    assert done.returncode == 2
    assert message(done).startswith("vlmscope: cannot read none.toml")


def test_attempts_count_from_one(config: Path, tmp_path: Path) -> None:
    done = vlmscope("train", config, "--out", "out", "--attempt", 0, folder=tmp_path)
    assert done.returncode == 2
    assert "argument --attempt: expected a number from 1, got 0" in message(done)


def test_missing_torch_is_told_with_the_remedy(config: Path, tmp_path: Path) -> None:
    done = vlmscope("train", config, "--out", "out", folder=tmp_path, without=("torch",))
    assert done.returncode == 2
    assert (
        message(done) == "vlmscope: training needs torch, which is not here: pip install '.[train]' in the repository"
    )
