"""Small real image files for tests."""

import io
from typing import Any

from PIL import Image


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def plain_picture(color: str = "red", size: tuple[int, int] = (8, 6), kind: str = "PNG") -> bytes:
    return encoded(Image.new("RGB", size, color), kind)


def left_red_right_blue() -> Image.Image:
    image = Image.new("RGB", (16, 8), "red")
    image.paste("blue", (8, 0, 16, 8))
    return image
