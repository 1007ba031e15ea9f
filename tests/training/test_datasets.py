"""Rows as prompts: messages, images, columns, keys and the built-in dataset."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.training.data_files import color_rows, write_jsonl
from training.config import DataConfig
from training.datasets import Access, DataFault, PromptDataset, open_dataset
from training.datasets.table import Table

ANYWHERE = Access(roots=None)


def easy_vqa(split: str = "train", **fields) -> PromptDataset:
    return open_dataset(DataConfig.model_validate(fields), split=split, access=Access(roots=()))


def rows_of(tmp_path: Path, rows: list[dict], **fields) -> PromptDataset:
    source = write_jsonl(tmp_path / "rows.jsonl", rows)
    return open_dataset(DataConfig.model_validate({"source": source} | fields), access=ANYWHERE)


def content(dataset: PromptDataset, row: int = 0) -> list[dict]:
    return dataset[row].messages[-1]["content"]


def test_easy_vqa_has_its_published_size_and_kinds():
    assert len(easy_vqa()) == 38_575
    assert len(easy_vqa("test")) == 9_673
    color, shape, yes_no = (len(easy_vqa(subset=kind)) for kind in ("color", "shape", "yesno"))
    assert color == 5_166
    assert color + shape + yes_no == 38_575
    assert {easy_vqa(subset="yesno")[row].columns["answer"] for row in range(50)} == {"yes", "no"}


def test_an_easy_vqa_sample_is_an_image_and_a_question():
    sample = easy_vqa(subset="color")[0]
    assert sample.messages == (
        {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "what color is the shape?"}]},
    )
    assert sample.columns == {"question": "what color is the shape?", "answer": "blue", "kind": "color"}
    [image] = sample.images
    assert (image.width, image.height, image.format) == (64, 64, "png")
    picture = image.open()
    darkest = [low for low, _ in picture.getextrema()]
    assert darkest.index(max(darkest)) == 2  # blue is the channel that no pixel lacks


def test_held_out_images_are_not_among_the_training_images():
    train, test = easy_vqa(subset="color"), easy_vqa("test", subset="color")
    seen = {train[row].images[0].sha256 for row in range(len(train))}
    assert not seen & {test[row].images[0].sha256 for row in range(len(test))}


def test_images_come_before_the_text_unless_the_prompt_marks_their_places(tmp_path):
    rows = [{"question": "<image> or <image>?", "image": ["red.png", "blue.png"], "answer": "red"}]
    color_rows(tmp_path)
    image, text = {"type": "image"}, lambda words: {"type": "text", "text": words}
    assert content(rows_of(tmp_path, rows, prompt="Which one?")) == [image, image, text("Which one?")]
    assert content(rows_of(tmp_path, rows)) == [image, text(" or "), image, text("?")]
    assert [image.open().getpixel((0, 0)) for image in rows_of(tmp_path, rows)[0].images] == [(255, 0, 0), (0, 0, 255)]


def test_marks_and_images_must_be_equal_in_number(tmp_path):
    color_rows(tmp_path)
    dataset = rows_of(tmp_path, [{"question": "<image> or <image>?", "image": "red.png", "answer": "red"}])
    with pytest.raises(DataFault, match=r"row 0: the prompt has 2 places for images .* and the row has 1 images") as it:
        dataset[0]
    assert (it.value.field, it.value.row) == ("data.prompt", 0)


def test_the_template_takes_columns_and_leaves_other_braces(tmp_path):
    rows = [{"first name": "Ada", "n": 3, "list": ["a", "b"], "nothing": None, "answer": "x"}]
    template = r'{first name} {n} {list} {nothing}| \boxed{} {"bbox": [1]} {{n}} {1}'
    dataset = rows_of(tmp_path, rows, prompt=template, image_column="")
    text = r'Ada 3 ["a", "b"] | \boxed{} {"bbox": [1]} {n} {1}'
    assert content(dataset) == [{"type": "text", "text": text}]


def test_a_value_that_looks_like_a_slot_is_not_filled_again(tmp_path):
    dataset = rows_of(tmp_path, [{"question": "{answer}", "answer": "secret"}], image_column="")
    assert content(dataset) == [{"type": "text", "text": "{answer}"}]


def test_a_system_prompt_comes_first(tmp_path):
    dataset = rows_of(tmp_path, color_rows(tmp_path), system_prompt="Be brief.")
    assert [message["role"] for message in dataset[0].messages] == ["system", "user"]
    assert dataset[0].messages[0]["content"] == [{"type": "text", "text": "Be brief."}]


@pytest.mark.parametrize("nothing", [None, "", [], [None], {"bytes": None, "path": None}])
def test_a_row_may_have_no_image(tmp_path, nothing):
    dataset = rows_of(tmp_path, [{"question": "2 + 2?", "image": nothing, "answer": "4"}])
    assert dataset[0].images == ()
    assert content(dataset) == [{"type": "text", "text": "2 + 2?"}]


def test_the_column_images_is_found_where_the_default_column_is_missing(tmp_path):
    rows = [{"question": "?", "images": row["image"], "answer": "x"} for row in color_rows(tmp_path, 2)]
    dataset = rows_of(tmp_path, rows)
    assert dataset.image_column == "images"
    assert dataset[1].images[0].open().getpixel((0, 0)) == (0, 128, 0)
    assert "images" not in dataset[1].columns
    both = rows_of(tmp_path, [row | {"image": "red.png"} for row in rows])
    assert both.image_column == "image"
    assert rows_of(tmp_path, rows, image_column="").image_column == ""


def test_rows_with_arrays_and_pil_images_are_prompts_too(tmp_path):
    """A table that a program makes; other columns that hold pictures are no columns for rewards."""
    white, red = np.full((4, 4), 255, np.uint8), Image.new("RGB", (4, 4), "red")
    row = {"question": "?", "images": [white, red], "answer": np.int64(3), "mask": red, "box": np.array([1, 2])}
    sample = PromptDataset(Table("made", tuple(row), [row], tmp_path, None), DataConfig())[0]
    assert [image.open().getpixel((0, 0)) for image in sample.images] == [(255, 255, 255), (255, 0, 0)]
    assert sample.columns == {"question": "?", "answer": 3, "box": [1, 2]}
    assert sample.record().model_dump_json()


def test_the_mapped_answer_stands_under_answer_beside_its_own_name(tmp_path):
    rows = [{"question": "?", "label": "cat", "answer": "other", "score": float("nan")}]
    dataset = rows_of(tmp_path, rows, answer_column="label", image_column="")
    assert dataset[0].columns == {"question": "?", "label": "cat", "answer": "cat", "score": None}


def test_a_lone_surrogate_does_not_reach_prompt_and_record(tmp_path):
    dataset = rows_of(tmp_path, [{"question": "a\ud800b", "answer": "x"}], image_column="")
    assert content(dataset) == [{"type": "text", "text": "a?b"}]
    assert dataset[0].record().model_dump_json()


def test_the_key_follows_prompt_image_and_answer_and_nothing_else(tmp_path):
    color_rows(tmp_path)
    row = {"question": "Which color?", "image": "red.png", "answer": "red", "id": 1}
    variants = [
        row,
        row | {"id": 2},
        row | {"answer": "blue"},
        row | {"image": "blue.png"},
        row | {"question": "What color?"},
    ]
    keys = [rows_of(tmp_path, variants)[index].key for index in range(5)]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4


def test_limit_takes_the_first_rows(tmp_path):
    dataset = rows_of(tmp_path, color_rows(tmp_path), limit=2)
    assert len(dataset) == 2
    with pytest.raises(IndexError):
        dataset[2]
    assert len(rows_of(tmp_path, color_rows(tmp_path), limit=99)) == 5


def test_the_record_names_row_images_and_columns(tmp_path):
    record = rows_of(tmp_path, color_rows(tmp_path))[1].record()
    assert (record.row, record.columns["answer"]) == (1, "green")
    assert [(image.width, image.height, image.format) for image in record.images] == [(8, 6, "png")]


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({"prompt": "{query}"}, "data.prompt", "no column 'query'; it has question, image, answer"),
        ({"image_column": "picture"}, "data.image_column", "no column 'picture'"),
        ({"answer_column": "label"}, "data.answer_column", "no column 'label'"),
        ({"subset": "color"}, "data.subset", "leave subset empty"),
        ({"split": "test"}, "data.split", "has the split train, got 'test'"),
    ],
)
def test_a_field_that_does_not_fit_the_file_is_named(tmp_path, fields, field, said):
    with pytest.raises(DataFault) as caught:
        rows_of(tmp_path, color_rows(tmp_path), **fields)
    assert caught.value.field == field
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("split", "subset", "field", "said"),
    [("validation", None, "data.split", "train and test"), ("train", "colour", "data.subset", "color, shape, yesno")],
)
def test_unknown_parts_of_easy_vqa_are_named(split, subset, field, said):
    with pytest.raises(DataFault) as caught:
        easy_vqa(split, subset=subset)
    assert caught.value.field == field
    assert said in str(caught.value)


def test_a_row_without_a_mapped_column_is_named(tmp_path):
    rows = color_rows(tmp_path)
    del rows[2]["answer"]
    with pytest.raises(DataFault, match="row 2") as caught:
        rows_of(tmp_path, rows)[2]
    assert (caught.value.field, caught.value.row) == ("data.answer_column", 2)


def test_an_image_column_cannot_stand_in_the_prompt(tmp_path):
    with pytest.raises(DataFault, match="take it out") as caught:
        rows_of(tmp_path, color_rows(tmp_path), prompt="{image}?")[0]
    assert caught.value.field == "data.prompt"


def test_a_corrupt_image_is_named_with_its_row_when_it_is_decoded(tmp_path):
    rows = color_rows(tmp_path)
    whole = (tmp_path / "green.png").read_bytes()
    (tmp_path / "green.png").write_bytes(whole[:-30])
    with pytest.raises(ValueError, match="row 1, column 'image'"):
        [image.open() for image in rows_of(tmp_path, rows)[1].images]


def test_an_image_file_is_read_once(tmp_path):
    dataset = rows_of(tmp_path, color_rows(tmp_path))
    first = dataset[0].images[0]
    (tmp_path / "red.png").unlink()
    assert dataset[0].images[0] is first


def test_data_and_rewards_and_preflight_load_without_torch():
    program = "import sys, training.datasets, training.rewards, training.preflight; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
