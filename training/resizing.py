"""The area in pixels that a run gives its images, whatever the model family; what is stored stays the original."""

import math

from PIL import Image

from training.config import DataConfig


def bounded_size(width: int, height: int, config: DataConfig) -> tuple[int, int]:
    """The size after data.min_pixels and data.max_pixels, at the same aspect ratio and at least 1 x 1.

    Example: 4000 x 3000 at max_pixels = 1,000,000 becomes 1154 x 866.
    """
    least, most = config.min_pixels, config.max_pixels
    if most is not None and width * height > most:
        scale = math.sqrt(most / (width * height))
        return max(1, math.floor(width * scale)), max(1, math.floor(height * scale))
    if least is not None and width * height < least:
        scale = math.sqrt(least / (width * height))
        return math.ceil(width * scale), math.ceil(height * scale)
    return width, height


def bounded(picture: Image.Image, config: DataConfig) -> Image.Image:
    """The picture at its bounded size (bicubic); the same one when that is its own."""
    size = bounded_size(*picture.size, config)
    return picture if size == picture.size else picture.resize(size, Image.Resampling.BICUBIC)
