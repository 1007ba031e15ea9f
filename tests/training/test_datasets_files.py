"""Local files: formats, splits, access, and files that are broken."""

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.training.data_files import COLORS, color_rows, write_jsonl
from tests.training.pictures import plain_picture
from training.config import DataConfig
from training.datasets import Access, DataFault, PromptDataset, open_dataset

ANYWHERE = Access(roots=None)


def open_source(source: Path | str, access: Access = ANYWHERE, **fields) -> PromptDataset:
    return open_dataset(DataConfig.model_validate({"source": str(source)} | fields), access=access)


def refusal(source: Path | str, access: Access = ANYWHERE, **fields) -> DataFault:
    with pytest.raises(DataFault) as caught:
        open_source(source, access, **fields)
    return caught.value


def write(path: Path, rows: list[dict]) -> Path:
    match path.suffix:
        case ".jsonl":
            write_jsonl(path, rows)
        case ".json":
            path.write_text(json.dumps(rows))
        case ".csv":
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, rows[0])
                writer.writeheader()
                writer.writerows(rows)
        case ".parquet":
            pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("ending", [".jsonl", ".json", ".csv", ".parquet"])
def test_every_format_gives_the_same_samples(tmp_path, ending):
    rows = color_rows(tmp_path)
    expected = open_source(write(tmp_path / "expected.jsonl", rows))
    dataset = open_source(write(tmp_path / f"rows{ending}", rows))
    assert [dataset[row] for row in range(5)] == [expected[row] for row in range(5)]
    assert dataset.column_names == ("question", "image", "answer")


@pytest.mark.parametrize("many", [False, True])
def test_parquet_may_hold_the_images_themselves(tmp_path, many):
    image = [{"bytes": plain_picture(color), "path": f"{color}.png"} for color in COLORS]
    rows = [
        {"question": "?", "image": [item] if many else item, "answer": color}
        for item, color in zip(image, COLORS, strict=True)
    ]
    dataset = open_source(write(tmp_path / "rows.parquet", rows))
    assert [dataset[row].images[0].data for row in range(5)] == [plain_picture(color) for color in COLORS]
    assert not dataset.names_files


def test_parquet_rows_are_found_across_row_groups(tmp_path):
    table = pa.Table.from_pylist([{"question": f"q{i}", "answer": str(i)} for i in range(95)])
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=10)
    dataset = open_source(tmp_path / "rows.parquet", image_column="")
    assert [dataset[row].columns["answer"] for row in (94, 0, 10, 9, 55)] == ["94", "0", "10", "9", "55"]
    assert len(dataset) == 95


def test_a_folder_has_one_split_a_file(tmp_path):
    rows = color_rows(tmp_path)
    write_jsonl(tmp_path / "train.jsonl", rows[:3])
    write_jsonl(tmp_path / "test.jsonl", rows[3:])
    assert len(open_source(tmp_path)) == 3
    assert [open_source(tmp_path, split="test")[row].columns["answer"] for row in (0, 1)] == ["black", "yellow"]
    fault = refusal(tmp_path, split="validation")
    assert fault.field == "data.split"
    assert "test, train" in str(fault)


def test_a_relative_source_is_looked_for_in_every_root(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    write_jsonl(second / "rows.jsonl", color_rows(second))
    access = Access(roots=(first, second))
    assert len(open_source("rows.jsonl", access)) == 5
    assert open_source("rows.jsonl", access)[0].images[0].width == 8


@pytest.mark.parametrize("source", ["../outside.jsonl", "link.jsonl", "linked/outside.jsonl", "{absolute}"])
def test_a_source_out_of_the_roots_is_refused(tmp_path, source):
    root = tmp_path / "root"
    root.mkdir()
    outside = tmp_path / "outside.jsonl"
    write_jsonl(outside, color_rows(tmp_path))
    (root / "link.jsonl").symlink_to(outside)
    (root / "linked").symlink_to(tmp_path)
    fault = refusal(source.format(absolute=outside), Access(roots=(root,)))
    assert fault.field == "data.source"
    assert "outside the folders that may be read" in str(fault)


def test_a_split_that_is_a_link_out_of_the_root_is_refused(tmp_path):
    root = tmp_path / "root"
    (root / "data").mkdir(parents=True)
    write_jsonl(tmp_path / "outside.jsonl", color_rows(tmp_path))
    (root / "data" / "train.jsonl").symlink_to(tmp_path / "outside.jsonl")
    assert "link out of" in str(refusal("data", Access(roots=(root,))))


def test_an_image_out_of_the_root_is_refused_by_its_row(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    color_rows(tmp_path)
    write_jsonl(root / "rows.jsonl", [{"question": "?", "image": "../red.png", "answer": "red"}])
    dataset = open_source("rows.jsonl", Access(roots=(root,)))
    with pytest.raises(DataFault, match=r"row 0, column 'image'.*outside") as caught:
        dataset[0]
    assert (caught.value.field, caught.value.row) == ("data.image_column", 0)


@pytest.mark.parametrize("source", ["gone.jsonl", "a\tb", "x" * 400, "~nobody-here/rows.jsonl", "loop"])
def test_a_source_that_does_not_exist_is_refused(tmp_path, source):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for access in (ANYWHERE, Access(roots=(tmp_path,)), Access(roots=())):
        fault = refusal(source, access)
        assert fault.field == "data.source"
        assert len(str(fault)) < 700


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", b'{"question": "a"}\n{"question": \n', "line 2 is not JSON"),
        ("a.jsonl", b'["question"]\n', "line 1: expected an object, got list"),
        ("a.jsonl", b"[" * 100_000, "is not JSON"),
        ("a.jsonl", b"", "no rows"),
        ("a.json", b'{"rows": []}', "expected a list of objects"),
        ("a.json", b"[1, 2]", "expected a list of objects"),
        ("a.jsonl", b"\xff\xfe{}", "is not UTF-8 (byte 0)"),
        ("a.csv", b"question,answer\na,b,c\n", "line 2 has not the 2 fields"),
        ("a.csv", b"question,answer\na\n", "line 2 has not the 2 fields"),
        ("a.csv", b'question,answer\n"a"b,c\n', "line 2"),
        ("a.parquet", b"PAR1 no more", "no readable Parquet file"),
        ("a.txt", b"hello", "expected a file that ends in .jsonl, .json, .csv, .parquet, got a.txt"),
    ],
)
def test_a_broken_file_is_refused_with_its_place_and_a_remedy(tmp_path, name, text, said):
    (tmp_path / name).write_bytes(text)
    fault = refusal(tmp_path / name, image_column="")
    assert fault.field == "data.source"
    assert said in str(fault)


def test_an_empty_folder_is_refused(tmp_path):
    assert "holds no .jsonl" in str(refusal(tmp_path))


def test_a_damaged_row_group_is_refused_when_it_is_read(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"question": ["q" * 5000], "answer": ["a"]}), path, compression="zstd")
    data = bytearray(path.read_bytes())
    data[20:60] = bytes(40)
    path.write_bytes(data)
    dataset = open_source(path, image_column="")
    with pytest.raises(DataFault, match="no readable Parquet file"):
        dataset[0]


def test_line_separators_inside_json_strings_do_not_split_rows(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"question": "a\u2028b", "answer": "c"}\n\n', encoding="utf-8")
    dataset = open_source(tmp_path / "rows.jsonl", image_column="")
    assert len(dataset) == 1
    assert dataset[0].columns["question"] == "a\u2028b"
