"""Prompts for tests: real easy-vqa images, and drawn ones of any size, in messages of different length."""

import hashlib
import random
from functools import cache

from PIL import Image

from tests.training.pictures import encoded
from training.config import DataConfig
from training.datasets import Access, PromptDataset, Sample, open_dataset
from training.images import SourceImage, read_image


@cache
def color_questions() -> PromptDataset:
    return open_dataset(DataConfig(subset="color"), access=Access(roots=()))


def picture(index: int) -> SourceImage:
    return color_questions()[index].images[0]


@cache
def drawn(width: int, height: int, seed: int = 0) -> SourceImage:
    """Coarse colored noise: no two seeds look alike at any resolution."""
    noise = Image.frombytes("RGB", (4, 4), random.Random(seed).randbytes(48))
    return read_image(encoded(noise.resize((width, height))), root=None, where="a test")


def asked(*content: str | SourceImage, row: int = 0) -> Sample:
    """One user's message of texts and images, in this order."""
    images = tuple(part for part in content if isinstance(part, SourceImage))
    blocks = [{"type": "text", "text": part} if isinstance(part, str) else {"type": "image"} for part in content]
    key = hashlib.sha256(repr(content).encode()).hexdigest()
    return Sample(row, key, ({"role": "user", "content": blocks},), images, {"answer": "red"})


def prompt(text: str, *pictures: int, row: int = 0) -> Sample:
    """A user's message with pictures of easy-vqa before its text."""
    return asked(*(picture(index) for index in pictures), text, row=row)


def uneven_prompts() -> list[Sample]:
    """Three prompts with an image each and of clearly different length: padding matters."""
    return [
        prompt("what color?", 0),
        prompt("what is the color of the shape that is shown in this picture here?", 1, row=1),
        prompt("is there a red shape in the image or is it another one?", 2, row=2),
    ]


def mixed_prompts() -> list[Sample]:
    """None, one, two and three images of different sizes, before, between and after text of different length."""
    return [
        asked(drawn(64, 64, 1), "what color?"),
        asked("is there a red shape in the image or is it another one?", row=1),
        asked("same color?", drawn(40, 90, 2), "or", drawn(33, 70, 3), "?", row=2),
        asked(drawn(100, 60, 4), drawn(30, 30, 5), "how many shapes are there?", drawn(64, 48, 6), row=3),
    ]
