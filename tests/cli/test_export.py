"""`vlmscope export`: refusals before anything heavy; what it writes is tested with training."""

from pathlib import Path

from tests.cli.command import loaded, message, vlmscope


def test_an_existing_model_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "out" / "model").mkdir(parents=True)
    done = vlmscope("export", "run", "--out", "out", folder=tmp_path)
    assert done.returncode == 2
    assert message(done) == "vlmscope: out/model is there already; remove it, or name another --out"
    assert "torch" not in loaded(done)


def test_missing_torch_is_told_with_the_remedy(tmp_path: Path) -> None:
    done = vlmscope("export", "run", "--out", "out", folder=tmp_path, without=("torch",))
    assert done.returncode == 2
    assert (
        message(done) == "vlmscope: training needs torch, which is not here: pip install '.[train]' in the repository"
    )


def test_a_directory_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    done = vlmscope("export", "run", "--out", "out", folder=tmp_path)
    assert done.returncode == 1
    assert message(done).endswith("run/checkpoints holds no whole checkpoint; name the directory of a run that has one")
    assert not (tmp_path / "out").exists()
