"""Whole chat messages in a column: what is taken, where the images stand, and how a refusal reads."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.training.data_files import color_rows, write_jsonl
from training.config import DataConfig, RunConfig
from training.datasets import Access, DataFault, PromptDataset, open_dataset
from training.preflight import check

IMAGE = {"type": "image"}


def words(text: str) -> dict:
    return {"type": "text", "text": text}


def opened(folder, messages, images=None, **fields) -> PromptDataset:
    color_rows(folder)
    source = write_jsonl(folder / "rows.jsonl", [{"chat": messages, "image": images, "answer": "red"}])
    fields = {"source": source, "messages_column": "chat"} | fields
    return open_dataset(DataConfig.model_validate(fields), access=Access(roots=None))


def refusal(folder, messages, images=None) -> DataFault:
    dataset = opened(folder, messages, images)
    with pytest.raises(DataFault) as caught:
        dataset[0]
    with pytest.raises(DataFault) as checked:
        dataset.check_row(0)
    assert str(checked.value) == str(caught.value)
    return caught.value


def test_content_may_be_text_or_blocks_and_becomes_blocks(tmp_path):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [words("Is "), IMAGE, words(" like "), IMAGE, words("?")]},
        {"role": "assistant", "content": "no"},
        {"role": "user", "content": "Why?"},
    ]
    sample = opened(tmp_path, messages, ["red.png", "blue.png"])[0]
    assert sample.messages == (
        {"role": "system", "content": [words("Be brief.")]},
        messages[1],
        {"role": "assistant", "content": [words("no")]},
        {"role": "user", "content": [words("Why?")]},
    )
    assert [image.open().getpixel((0, 0)) for image in sample.images] == [(255, 0, 0), (0, 0, 255)]
    assert sample.columns == {"answer": "red"}


def test_images_without_a_place_stand_before_the_first_users_text(tmp_path):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "I do."},
        {"role": "user", "content": "What is it?"},
    ]
    sample = opened(tmp_path, messages, ["red.png", "blue.png"])[0]
    assert sample.messages[1]["content"] == [IMAGE, IMAGE, words("Look.")]
    assert sample.messages[3]["content"] == [words("What is it?")]


def test_marks_in_text_are_places_too(tmp_path):
    sample = opened(tmp_path, [{"role": "user", "content": "Is <image> red?"}], "red.png")[0]
    assert sample.messages[0]["content"] == [words("Is "), IMAGE, words(" red?")]


def test_messages_may_be_json_text_and_parquet_structs(tmp_path):
    messages = [{"role": "user", "content": [IMAGE, words("What is it?")]}]
    expected = opened(tmp_path, messages, "red.png")[0]
    assert opened(tmp_path, json.dumps(messages), "red.png")[0] == expected
    table = pa.Table.from_pylist([{"chat": messages, "image": "red.png", "answer": "red"}])
    pq.write_table(table, tmp_path / "rows.parquet")
    config = DataConfig(source=str(tmp_path / "rows.parquet"), messages_column="chat")
    assert open_dataset(config, access=Access(roots=None))[0] == expected


def test_the_runs_system_prompt_comes_first_where_a_row_has_none(tmp_path):
    user = {"role": "user", "content": "What?"}
    own = {"role": "system", "content": "Mine."}
    assert opened(tmp_path, [user], system_prompt="Ours.")[0].messages[0]["content"] == [words("Ours.")]
    sample = opened(tmp_path, [own, user], system_prompt="Ours.")[0]
    assert [message["role"] for message in sample.messages] == ["system", "user"]
    assert sample.messages[0]["content"] == [words("Mine.")]


USER = {"role": "user", "content": "What?"}


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ("What is it?", "Expecting value"),
        (None, "expected a list of messages"),
        ([], "expected a list of messages"),
        (["What?"], "expected a message with role and content"),
        ([{"role": "user"}], "content as text or a list of blocks, got None"),
        (
            [{"role": "developer", "content": "Be brief."}, USER],
            "one of the roles system, user, assistant, got 'developer'",
        ),
        ([{"role": "tool", "content": "4"}, USER], "got 'tool'; change the role"),
        ([{"role": "system", "content": "Be brief."}], "expected a user's message"),
        ([USER, {"role": "system", "content": "Be brief."}], "a system message can only be the first"),
        ([USER, {"role": "assistant", "content": ""}], "does not end in text; take it out"),
        ([{"role": "user", "content": [{"type": "video"}]}], "videos are not supported; use images, or remove the row"),
        ([{"role": "user", "content": [{"type": "audio"}]}], "expected text blocks and"),
        ([{"role": "user", "content": [{"type": "image", "path": "a.png"}]}], "put the images into the image column"),
        ([{"role": "user", "content": [{"type": "text", "text": 3}]}], "expected text blocks and"),
    ],
)
def test_what_is_no_prompt_is_refused_by_its_row(tmp_path, messages, said):
    fault = refusal(tmp_path, messages)
    assert (fault.field, fault.row) == ("data.messages_column", 0)
    assert str(fault).startswith("row 0, column 'chat': ")
    assert said in str(fault)


def test_places_and_images_must_be_equal_in_number(tmp_path):
    fault = refusal(tmp_path, [{"role": "user", "content": [IMAGE, words("a"), IMAGE]}], "red.png")
    assert (fault.field, fault.row) == ("data.messages_column", 0)
    assert "the prompt has 2 places for images" in str(fault)
    assert "the row has 1 images" in str(fault)
    assert "the row has 0 images" in str(refusal(tmp_path, [{"role": "user", "content": [IMAGE]}]))


def test_messages_and_a_template_cannot_both_make_the_prompt():
    with pytest.raises(ValueError, match="leave one of them out"):
        DataConfig(messages_column="chat", prompt="{question} Be brief.")


def test_preflight_names_every_row_whose_messages_are_no_prompt(tmp_path):
    color_rows(tmp_path)
    rows = [{"chat": [USER], "image": "red.png", "answer": "red"} for _ in range(4)]
    rows[1]["chat"] = [{"role": "developer", "content": "x"}]
    rows[3]["chat"] = [{"role": "user", "content": [{"type": "video"}]}]
    data = {"source": write_jsonl(tmp_path / "rows.jsonl", rows), "messages_column": "chat"}
    run = RunConfig.model_validate({"data": data, "optimization": {"prompts_per_step": 2}})
    found = check(run, access=Access(roots=None), time_budget=0.0)
    assert [(finding.level, finding.field, finding.row) for finding in found] == [
        ("error", "data.messages_column", 1),
        ("error", "data.messages_column", 3),
    ]
