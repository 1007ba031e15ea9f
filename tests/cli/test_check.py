"""`vlmscope check`: the findings of a submission, without a server."""

from pathlib import Path

from tests.cli.command import loaded, message, vlmscope


def test_run_that_can_start_exits_0_without_torch(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('[data]\nsubset = "color"\n')
    done = vlmscope("check", "run.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "run.toml: this run can start"
    assert "torch" not in loaded(done)


def test_run_that_cannot_work_exits_2_and_names_each_field(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('[model]\npath = "./nowhere"\n\n[[rewards]]\nname = "acuracy"\n')
    done = vlmscope("check", "run.toml", folder=tmp_path)
    assert done.returncode == 2
    lines = done.stdout.splitlines()
    assert any(line.startswith("error: model.path: ") and "nowhere" in line for line in lines)
    assert any(line.startswith("error: rewards") and "accuracy" in line for line in lines)


def test_unreadable_configuration_exits_2_with_the_field(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("[optimization]\nmax_steps = 0\n")
    done = vlmscope("check", "run.toml", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert message(done).startswith("vlmscope: optimization.max_steps: ")
