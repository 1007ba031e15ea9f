"""Prompts for tests: real easy-vqa images in messages of different length."""

from functools import cache

from training.config import DataConfig
from training.datasets import Access, PromptDataset, Sample, open_dataset
from training.images import SourceImage


@cache
def color_questions() -> PromptDataset:
    return open_dataset(DataConfig(subset="color"), access=Access(roots=()))


def picture(index: int) -> SourceImage:
    return color_questions()[index].images[0]


def prompt(text: str, *pictures: int, row: int = 0) -> Sample:
    """A user message with the pictures first."""
    content = [*({"type": "image"} for _ in pictures), {"type": "text", "text": text}]
    key = f"{hash((text, pictures)) % 16**16:064x}"
    images = tuple(picture(i) for i in pictures)
    return Sample(row, key, ({"role": "user", "content": content},), images, {"answer": "red"})


def uneven_prompts() -> list[Sample]:
    """Three prompts of clearly different length: padding matters."""
    return [
        prompt("what color?", 0),
        prompt("what is the color of the shape that is shown in this picture here?", 1, row=1),
        prompt("is there a red shape in the image or is it another one?", 2, row=2),
    ]
