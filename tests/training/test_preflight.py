"""What a check of a run finds: each fault with its field or row and a remedy, and nothing wrong with what is right."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.training.data_files import COLORS, color_rows, write_jsonl
from tests.training.pictures import plain_picture
from training.config import RunConfig
from training.datasets import Access
from training.model_path import model_directory
from training.preflight import Finding, check
from training.presets import load_preset, preset_names


@pytest.fixture
def source(tmp_path: Path) -> str:
    return write_jsonl(tmp_path / "rows.jsonl", color_rows(tmp_path))


def config(source: str = "easy-vqa", **sections: Any) -> RunConfig:
    data = {"source": source} | sections.pop("data", {})
    return RunConfig.model_validate({"data": data, "optimization": {"prompts_per_step": 2}} | sections)


def findings(run: RunConfig, level: str = "error", **options: Any) -> list[Finding]:
    access = options.pop("access", Access(roots=None))
    return [finding for finding in check(run, access=access, **options) if finding.level == level]


def the_error(run: RunConfig, **options: Any) -> Finding:
    [finding] = findings(run, **options)
    return finding


@pytest.mark.parametrize("name", preset_names())
def test_the_presets_pass_without_a_word(name):
    assert check(load_preset(name), access=Access(roots=())) == []


def test_a_run_on_a_local_file_passes(source):
    assert check(config(source), access=Access(roots=(Path(source).parent,))) == []


@pytest.mark.parametrize(
    ("reward", "field", "said"),
    [
        ({"name": "acuracy"}, "rewards.1.name", "did you mean 'accuracy'?"),
        ({"name": "numeric", "options": {"tolerance": 1}}, "rewards.1.options", "absolute_tolerance"),
    ],
)
def test_an_unknown_reward_or_option(reward, field, said):
    error = the_error(config(rewards=[{"name": "accuracy"}, reward]))
    assert error.field == field
    assert said in error.message


def test_a_missing_image_file_is_named_by_its_row(source, tmp_path):
    (tmp_path / "blue.png").unlink()
    error = the_error(config(source))
    assert (error.field, error.row) == ("data.image_column", 2)
    assert "row 2, column 'image'" in error.message
    assert "blue.png; add it, correct the path or remove the row" in error.message


def test_a_corrupt_image_is_named_by_its_row(source, tmp_path):
    whole = (tmp_path / "green.png").read_bytes()
    (tmp_path / "green.png").write_bytes(whole[: len(whole) // 2])
    error = the_error(config(source))
    assert (error.field, error.row) == ("data.image_column", 1)
    assert "cannot be decoded" in error.message
    assert "replace it or remove the row" in error.message


def test_every_faulty_row_is_named(source, tmp_path):
    (tmp_path / "blue.png").unlink()
    (tmp_path / "red.png").write_bytes(b"no image")
    assert sorted((error.row, error.field) for error in findings(config(source))) == [
        (0, "data.image_column"),
        (2, "data.image_column"),
    ]


def test_many_faulty_rows_are_cut_short(tmp_path):
    rows = [{"question": "?", "image": f"{index}.png", "answer": "x"} for index in range(500)]
    run = config(write_jsonl(tmp_path / "rows.jsonl", rows))
    assert len(findings(run)) == 20
    assert [info.message for info in findings(run, "info")] == [
        "20 faulty rows were found and there may be more; correct them and check again"
    ]


def test_a_missing_image_is_found_however_late_its_row_and_short_the_time(tmp_path):
    rows = [{"question": "?", "image": "red.png", "answer": "red"}] * 300
    (tmp_path / "red.png").write_bytes(plain_picture())
    rows.append({"question": "?", "image": "gone.png", "answer": "red"})
    run = config(write_jsonl(tmp_path / "rows.jsonl", rows))
    assert [error.row for error in findings(run, time_budget=0.0)] == [300]


def test_images_that_there_was_no_time_to_decode_are_counted(tmp_path):
    (tmp_path / "red.png").write_bytes(plain_picture())
    (tmp_path / "blue.png").write_bytes(b"no image")
    rows = [{"question": "?", "image": "red.png", "answer": "red"}] * 20
    rows[15] = rows[15] | {"image": "blue.png"}
    run = config(write_jsonl(tmp_path / "rows.jsonl", rows))
    [info] = check(run, access=Access(roots=None), time_budget=0.0)
    assert (info.level, info.field) == ("info", "data.image_column")
    assert "the images of 8 of 20 rows" in info.message
    assert the_error(run).row == 15


def test_the_first_rows_are_decoded_in_any_case(source, tmp_path):
    (tmp_path / "red.png").write_bytes(b"no image")
    assert the_error(config(source), time_budget=0.0).row == 0


def test_images_inside_a_parquet_file_are_decoded(tmp_path):
    rows = [{"question": "?", "image": {"bytes": plain_picture(color)}, "answer": color} for color in COLORS]
    rows[3]["image"] = {"bytes": b"no image"}
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    error = the_error(config(str(tmp_path / "rows.parquet")))
    assert (error.field, error.row) == ("data.image_column", 3)


@pytest.mark.parametrize(
    ("data", "field", "said"),
    [
        ({"answer_column": "label"}, "data.answer_column", "it has question, image, answer"),
        ({"image_column": "picture"}, "data.image_column", "it has question, image, answer"),
        ({"prompt": "{query}"}, "data.prompt", "it has question, image, answer"),
        ({"subset": "color"}, "data.subset", "leave subset empty"),
        ({"split": "test"}, "data.split", "test.jsonl in a folder"),
    ],
)
def test_a_field_that_does_not_fit_the_data(source, data, field, said):
    error = the_error(config(source, data=data))
    assert error.field == field
    assert said in error.message


def test_a_row_without_a_mapped_column(tmp_path):
    rows = color_rows(tmp_path)
    del rows[4]["question"]
    error = the_error(config(write_jsonl(tmp_path / "rows.jsonl", rows)))
    assert (error.field, error.row) == ("data.prompt", 4)
    assert "add it to the row or remove the row" in error.message


def test_a_dataset_that_does_not_exist_or_lies_outside_the_roots(source, tmp_path):
    assert the_error(config("gone.jsonl")).field == "data.source"
    inside = tmp_path / "inside"
    inside.mkdir()
    error = the_error(config(source), access=Access(roots=(inside,)))
    assert error.field == "data.source"
    assert "VLMSCOPE_DATASET_ROOTS" in error.message


@pytest.mark.parametrize(("limit", "said"), [(None, "has 5 rows;"), (3, "has 3 rows (data.limit = 3);")])
def test_fewer_prompts_than_one_step_needs(source, limit, said):
    run = config(source, data={} if limit is None else {"limit": limit}, optimization={"prompts_per_step": 6})
    error = the_error(run)
    assert error.field == "optimization.prompts_per_step"
    assert "a step needs 6 prompts" in error.message
    assert said in error.message


def test_fewer_prompts_than_one_step_needs_are_taken_again_by_choice(source):
    assert not findings(config(source, data={"cycle": True}, optimization={"prompts_per_step": 6}))


def test_a_dataset_without_rows(tmp_path):
    error = the_error(config(write_jsonl(tmp_path / "rows.jsonl", [])))
    assert (error.field, error.message) == ("data.source", "rows.jsonl has no rows; add some")


def test_an_evaluation_split_that_does_not_exist():
    error = the_error(config(evaluation={"split": "validation"}))
    assert error.field == "evaluation.split"
    assert "train and test" in error.message


def test_rows_of_the_evaluation_split_are_checked_too(tmp_path):
    write_jsonl(tmp_path / "train.jsonl", color_rows(tmp_path))
    write_jsonl(tmp_path / "test.jsonl", [{"question": "?", "image": "gone.png", "answer": "x"}])
    error = the_error(config(str(tmp_path), evaluation={"split": "test"}))
    assert (error.field, error.row) == ("data.image_column", 0)
    assert "gone.png" in error.message


def test_evaluating_on_the_training_rows_is_warned_of():
    assert [warning.field for warning in findings(config(evaluation={"split": "train"}), "warning")] == [
        "evaluation.split"
    ]


@pytest.mark.parametrize("path", ["./no-such-model", "/no/such/model", "no-such-model", "demo-colour", "demo-color@x"])
def test_an_unknown_model_directory(path):
    error = the_error(config(model={"path": path}))
    assert error.field == "model.path"
    assert path.removeprefix("./") in error.message
    assert "demo-color" in error.message


def test_a_directory_without_a_model(tmp_path):
    for text, said in ((None, "cannot be read"), ("{", "cannot be read"), ("{}", "names no model_type")):
        if text is not None:
            (tmp_path / "config.json").write_text(text)
        error = the_error(config(model={"path": str(tmp_path)}))
        assert error.field == "model.path"
        assert said in error.message
        assert "save_pretrained" in error.message


def test_a_model_directory_may_look_like_a_hub_id_and_is_found_in_the_roots(tmp_path):
    model = tmp_path / "models" / "tiny"
    model.mkdir(parents=True)
    (model / "config.json").write_text('{"model_type": "smolvlm"}')
    access = Access(roots=(tmp_path,))
    assert check(config(model={"path": "models/tiny"}), access=access) == []
    assert model_directory("models/tiny", access) == model
    assert model_directory("owner/name", access) is None


def test_a_model_outside_the_roots_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "smolvlm"}')
    inside = tmp_path / "inside"
    inside.mkdir()
    error = the_error(config(model={"path": str(tmp_path)}), access=Access(roots=(inside,)))
    assert error.field == "model.path"
    assert "outside the folders that may be read" in error.message


def test_a_hub_id_is_taken_as_it_is():
    [info] = findings(config(model={"path": "Qwen/Qwen2.5-VL-3B-Instruct"}), "info")
    assert info.field == "model.path"
    assert findings(config(model={"path": "Qwen/Qwen2.5-VL-3B-Instruct"})) == []


def test_two_completions_with_scaled_advantages_are_warned_of():
    pair = {"generation": {"num_generations": 2}}
    assert [warning.field for warning in findings(config(**pair), "warning")] == ["generation.num_generations"]
    assert findings(config(**pair, algorithm={"name": "grpo", "scale_rewards": "none"}), "warning") == []
    assert findings(config(**pair, algorithm={"name": "rloo"}), "warning") == []
    each = {"name": "grpo", "multi_objective_aggregation": "normalize_then_sum"}
    [warning] = findings(config(**pair, algorithm=each), "warning")
    assert "sum_then_normalize" in warning.message


def test_a_loss_that_depends_on_micro_batches_is_warned_of():
    [warning] = findings(config(algorithm={"name": "grpo", "loss_type": "bnpo"}), "warning")
    assert warning.field == "algorithm.loss_type"


def test_a_reward_that_can_score_no_gold_answer_is_warned_of(source):
    [warning] = findings(config(source, rewards=[{"name": "accuracy"}, {"name": "numeric"}]), "warning")
    assert warning.field == "rewards.1.name"
    assert "'red', 'green', 'blue'" in warning.message


def test_a_prompt_that_shows_the_gold_answer_is_warned_of(source):
    [warning] = findings(config(source, data={"prompt": "{question} It is {answer}."}), "warning")
    assert warning.field == "data.prompt"


def test_a_column_that_no_reward_can_see_is_warned_of(tmp_path):
    rows = [row | {"step": 1} for row in color_rows(tmp_path)]
    [warning] = findings(config(write_jsonl(tmp_path / "rows.jsonl", rows)), "warning")
    assert warning.field == "data.source"
    assert "'step'" in warning.message


def test_all_faults_are_reported_at_once(source):
    run = config(source, model={"path": "./nowhere"}, rewards=[{"name": "x"}], optimization={"prompts_per_step": 9})
    assert {error.field for error in findings(run)} == {
        "model.path",
        "rewards.0.name",
        "optimization.prompts_per_step",
    }


QLORA = {"parameters": {"method": "lora", "quantization": "4bit"}}
FLASH = {"model": {"attention": "flash_attention_2"}}


@pytest.mark.parametrize(
    ("sections", "field"), [(QLORA, "parameters.quantization"), (FLASH, "model.attention")], ids=["4bit", "flash"]
)
def test_what_needs_a_gpu_is_refused_on_the_cpu_and_noted_where_the_device_is_not_known(source, sections, field):
    error = the_error(config(source, **sections, resources={"device": "cpu"}))
    assert error.field == field
    assert "expects a CUDA device, got resources.device = cpu; choose" in error.message
    assert field in {finding.field for finding in findings(config(source, **sections), "info")}
    assert findings(config(source, **sections)) == []


@pytest.mark.parametrize(
    ("sections", "package"), [(QLORA, "bitsandbytes"), (FLASH, "flash_attn")], ids=["4bit", "flash"]
)
def test_a_missing_package_is_named_where_training_is_installed(source, sections, package, monkeypatch):
    installed = {"torch", package}
    monkeypatch.setattr("training.preflight_device.find_spec", lambda name: name if name in installed else None)
    run = config(source, **sections, resources={"device": "cuda"})
    assert findings(run, "warning") == []
    installed.remove(package)
    [warning] = findings(run, "warning")
    assert f"expects the package {package}, which is not installed here: pip install" in warning.message
    installed.clear()  # a server without torch cannot know what its workers have
    assert findings(run, "warning") == []
