"""Image tokens told from sizes alone: what each real processor writes, known before a run takes a device."""

import json
import random
from pathlib import Path

import pytest
from PIL import Image

from tests.tiny_vlms import TINY_FAMILIES, tiny_policy
from tests.training.data_files import write_jsonl
from tests.training.pictures import plain_picture
from training.config import DataConfig, RunConfig
from training.datasets import Access, DataFault, open_dataset
from training.errors import DatasetError
from training.preflight import Finding, check
from training.processor_settings import read_model_files
from training.prompt_check import check_prompts, processor_budget
from training.resizing import bounded_size
from training.token_budget import TokenBudget
from training.vision import FAMILIES

ANYWHERE = Access(roots=None)


def random_sizes(count: int) -> list[tuple[int, int]]:
    """Squares, slivers and everything between, up to 200 : 1."""
    chance = random.Random(0)
    sizes = [(round(2 ** chance.uniform(0, 9.5)), round(2 ** chance.uniform(0, 9.5))) for _ in range(count)]
    return [(1, 1), (64, 64), (1, 150), (200, 1), *(size for size in sizes if max(size) <= 200 * min(size))]


def counted(policy, size: tuple[int, int]) -> int:
    """Placeholders that the real processor writes for an image."""
    processor = policy.processor
    text = getattr(processor, "boi_token", None) or processor.image_token
    ids = processor(text=[text], images=[[Image.new("RGB", size)]], return_tensors="pt")["input_ids"]
    return int((ids == policy.model.config.image_token_id).sum())


@pytest.mark.parametrize("family", TINY_FAMILIES)
def test_the_count_told_from_sizes_is_the_processors_own(family, tmp_path):
    policy = tiny_policy(family)
    loaded = processor_budget(policy, DataConfig())
    policy.save(tmp_path)
    files = read_model_files(tmp_path)
    on_disk = TokenBudget(FAMILIES[files.model_type].tokens, files.settings, DataConfig())
    sizes = random_sizes(60)
    real = [counted(policy, size) for size in sizes]
    assert [loaded.needed([size]) for size in sizes] == real
    assert [on_disk.needed([size]) for size in sizes] == real


def test_tiles_are_counted_where_the_longest_side_is_no_multiple_of_them():
    policy = tiny_policy("idefics3")
    policy.processor.image_processor.size = {"longest_edge": 200}
    budget = processor_budget(policy, DataConfig())
    sizes = [(200, height) for height in range(100, 200, 3)]
    assert [budget.needed([size]) for size in sizes] == [counted(policy, size) for size in sizes]


@pytest.mark.parametrize(
    ("settings", "size", "tokens"),
    [
        # both sides are multiples of 28
        ({"patch_size": 14, "merge_size": 2, "min_pixels": 3136, "max_pixels": 12845056}, (1456, 1092), 52 * 39),
        # sqrt(2000 * 1000 / 1003520) = 1.412 times too large: 1416.7 x 708.4, of which 50 x 25 units of 28 fit
        ({"patch_size": 14, "merge_size": 2, "min_pixels": 3136, "max_pixels": 1003520}, (2000, 1000), 50 * 25),
    ],
)
def test_settings_of_older_files_are_read(settings, size, tokens):
    assert TokenBudget(FAMILIES["qwen2_vl"].tokens, settings, DataConfig()).needed([size]) == tokens


def test_settings_that_do_not_tell_give_no_count():
    odd = dict.fromkeys(("size", "crop_size", "max_image_size", "patch_size", "max_patches", "merge_size"), 336)
    for family in set(FAMILIES):
        for settings in ({}, odd | {"image_grid_pinpoints": []}, odd | {"max_patches": 10**9}):
            budget = TokenBudget(FAMILIES[family].tokens, settings, DataConfig(max_prompt_length=1))
            assert budget.needed([(64, 64)]) is None
            budget.check([(64, 64)], row=0)
    pan_and_scan = {"image_seq_length": 256, "do_pan_and_scan": True}
    assert TokenBudget(FAMILIES["gemma3"].tokens, pan_and_scan, DataConfig()).needed([(64, 64)]) is None


@pytest.mark.parametrize(
    ("size", "bounds", "expected"),
    [
        ((4000, 3000), {"max_pixels": 1_000_000}, (1154, 866)),
        ((1000, 1000), {"max_pixels": 1_000_000}, (1000, 1000)),
        ((10, 5), {"min_pixels": 200}, (20, 10)),
        ((3000, 1), {"max_pixels": 100}, (547, 1)),
        ((10, 10), {}, (10, 10)),
    ],
)
def test_bounds_keep_the_aspect_ratio(size, bounds, expected):
    assert bounded_size(*size, DataConfig(**bounds)) == expected


@pytest.mark.parametrize("text", ["[]", "{", '{"added_tokens": [3, {"special": true}], "image_processor": null}'])
def test_files_that_are_no_settings_tell_nothing(tmp_path, text):
    (tmp_path / "config.json").write_text('{"model_type": "gemma3"}')
    for name in ("tokenizer.json", "processor_config.json", "preprocessor_config.json"):
        (tmp_path / name).write_text(text)
    files = read_model_files(tmp_path)
    assert (files.model_type, files.reserved) == ("gemma3", ())
    assert TokenBudget(FAMILIES["gemma3"].tokens, files.settings, DataConfig()).needed([(64, 64)]) is None


@pytest.fixture(scope="module")
def qwen(tmp_path_factory):
    """A token for every 32 x 32 pixels, and no bound of the processor's own that would matter."""
    path = tmp_path_factory.mktemp("qwen")
    policy = tiny_policy("qwen2_5_vl")
    policy.processor.image_processor.size = {"shortest_edge": 1024, "longest_edge": 1_000_000}
    policy.save(path)
    return policy, path


def rows(folder: Path, *sizes: tuple[int, int]) -> str:
    for index, size in enumerate(sizes):
        (folder / f"{index}.png").write_bytes(plain_picture(size=size))
    names = [f"{index}.png" for index in range(len(sizes))]
    return write_jsonl(folder / "rows.jsonl", [{"question": "?", "image": name, "answer": "red"} for name in names])


def findings(source: str, model: Path, **data) -> list[Finding]:
    document = {"model": {"path": str(model)}, "data": {"source": source} | data}
    run = RunConfig.model_validate(document | {"optimization": {"prompts_per_step": 1}})
    return check(run, access=ANYWHERE)


def test_too_many_image_tokens_are_found_from_the_header_with_a_bound_that_would_fit(tmp_path, qwen):
    _, path = qwen
    source = rows(tmp_path, (64, 64), (320, 640), (32, 32))
    whole = (tmp_path / "1.png").read_bytes()
    (tmp_path / "1.png").write_bytes(whole[: len(whole) // 2])  # its pixels cannot be decoded
    [found] = findings(source, path, max_prompt_length=100)
    assert (found.level, found.field, found.row) == ("error", "data.max_prompt_length", 1)
    assert "row 1: its images (320 x 640) are 200 tokens" in found.message
    assert "data.max_prompt_length = 100" in found.message
    fitting = int(found.message.split("data.max_pixels = ")[1].split()[0])
    (tmp_path / "1.png").write_bytes(whole)
    assert findings(source, path, max_prompt_length=100, max_pixels=fitting) == []
    bounded = TokenBudget(
        FAMILIES["qwen2_5_vl"].tokens, read_model_files(path).settings, DataConfig(max_pixels=fitting)
    )
    assert 80 <= bounded.needed([(320, 640)]) < 100


def test_where_no_bound_helps_it_is_said(tmp_path):
    policy = tiny_policy("gemma3")
    budget = processor_budget(policy, DataConfig(max_prompt_length=8))
    with pytest.raises(DataFault, match=r"are 8 tokens.* no data.max_pixels makes them fit"):
        budget.check([(64, 64), (32, 32)], row=0)


def test_a_picture_that_the_processor_refuses_for_its_shape_is_found_without_a_limit_too(tmp_path, qwen):
    _, path = qwen
    [found] = findings(rows(tmp_path, (64, 64), (402, 2)), path)
    assert (found.level, found.field, found.row) == ("error", "data.image_column", 1)
    assert "(402 x 2)" in found.message
    assert "more than 200 : 1" in found.message
    assert "crop it, or remove the row" in found.message


def test_a_model_that_is_not_here_leaves_the_count_to_the_runs_start(tmp_path, qwen):
    policy, _ = qwen
    source = rows(tmp_path, (64, 64), (320, 640))
    assert [f.level for f in findings(source, Path("owner/name"), max_prompt_length=100)] == ["info"]
    data = DataConfig(source=source, max_prompt_length=100)
    with pytest.raises(DatasetError, match=r"row 1: the prompt has 2\d\d tokens, data.max_prompt_length = 100"):
        check_prompts(policy, open_dataset(data, access=ANYWHERE), data)
    bounded = data.model_copy(update={"max_pixels": 64 * 64})
    check_prompts(policy, open_dataset(bounded, access=ANYWHERE), bounded)


@pytest.mark.parametrize("question", ["<|im_start|>user\nWhat is it?<|im_end|>", "What is <|image_pad|>?"])
def test_a_prompt_that_went_through_a_template_before_is_named_by_its_row(tmp_path, qwen, question):
    _, path = qwen
    source = rows(tmp_path, (64, 64), (64, 64))
    templated = {"question": question, "image": "0.png", "answer": "red"}
    Path(source).write_text(Path(source).read_text() + json.dumps(templated) + "\n")
    [found] = findings(source, path)
    assert (found.level, found.field, found.row) == ("error", "data.prompt", 2)
    assert "reads as a special token" in found.message
