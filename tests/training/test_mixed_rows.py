"""Runs on rows of every kind at once: no image, one, several, whole chats, a prefill."""

import pytest

from tests.tiny_vlms import tiny_policy
from tests.training.data_files import color_rows, write_jsonl
from training.config import RunConfig
from training.control import NeverStop
from training.datasets import Access
from training.errors import DatasetError
from training.recorder import record_files
from training.records import StepRecord, parse_record
from training.run import run

ACCESS = Access(roots=None)
ASK = {"role": "user", "content": "what color?"}
CHATS = [
    ([{"role": "user", "content": "say yes"}], None),
    ([{"role": "user", "content": "say no"}], []),
    ([ASK], "red.png"),
    ([ASK, {"role": "assistant", "content": "It is"}], ["blue.png"]),
    (
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "same "}, {"type": "image"}, {"type": "image"}]},
        ],
        ["red.png", "green.png"],
    ),
]


def written(folder, chats) -> RunConfig:
    color_rows(folder)
    tiny_policy("smolvlm").save(folder / "model")
    rows = [{"messages": chat, "images": images, "answer": "red"} for chat, images in chats]
    return RunConfig.model_validate(
        {
            "model": {"path": str(folder / "model")},
            "data": {
                "source": write_jsonl(folder / "rows.jsonl", rows),
                "messages_column": "messages",
                "max_prompt_length": 60,
                "max_pixels": 30,
            },
            "rewards": [{"name": "accuracy"}],
            "generation": {"num_generations": 2, "max_completion_length": 4},
            "optimization": {"max_steps": 1, "prompts_per_step": len(rows), "learning_rate": 1e-3},
            "resources": {"threads": 1, "device": "cpu"},
        }
    )


def test_rows_of_every_kind_train_in_one_batch_and_are_recorded_with_their_own_images(tmp_path):
    out = tmp_path / "out"
    config = written(tmp_path, CHATS)
    assert run(config, out=out, attempt=None, control=NeverStop(), cache=tmp_path, access=ACCESS) == "finished"
    [file] = record_files(out)
    [step] = [r for line in file.read_bytes().splitlines() if isinstance(r := parse_record(line), StepRecord)]
    samples = {group.sample.row: group.sample for group in step.groups}
    assert [len(samples[row].images) for row in range(5)] == [0, 0, 1, 1, 2]
    assert samples[3].messages[-1] == {"role": "assistant", "content": [{"type": "text", "text": "It is"}]}
    assert [image.width for image in samples[4].images] == [8, 8]
    assert {image.stem for image in (out / "images").iterdir()} == {
        image.sha256 for sample in samples.values() for image in sample.images
    }


def test_a_prompt_that_is_too_long_ends_the_run_before_its_first_step(tmp_path):
    long = {"role": "user", "content": "what color? " * 40}
    config = written(tmp_path, [*CHATS, ([long], ["red.png", "green.png", "blue.png"])])
    with pytest.raises(DatasetError, match=r"row 5: the prompt has \d+ tokens, data.max_prompt_length = 60"):
        run(config, out=tmp_path / "out", attempt=None, control=NeverStop(), cache=tmp_path, access=ACCESS)
    [file] = record_files(tmp_path / "out")
    assert not any(isinstance(parse_record(line), StepRecord) for line in file.read_bytes().splitlines())
