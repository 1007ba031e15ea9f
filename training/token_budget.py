"""Whether a row's images fit a run's longest prompt, told from their sizes alone; free of torch."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from training.config import DataConfig
from training.datasets import DataFault
from training.image_tokens import ImageShapeError, ImageTokens
from training.resizing import bounded_size

Sizes = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """Counts image tokens as a model's processor will; the prompt's text comes on top of them."""

    tokens: ImageTokens
    settings: Mapping[str, Any]
    data: DataConfig

    def needed(self, sizes: Sizes) -> int | None:
        """Tokens of a row's images; None where the settings do not tell.  Raises ImageShapeError."""
        try:
            return sum(self.tokens(self.settings, *bounded_size(*size, self.data)) for size in sizes)
        except ImageShapeError:
            raise
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError):  # whatever the files hold
            return None

    def check(self, sizes: Sizes, *, row: int) -> None:
        """Raise DataFault when an image's shape is refused, or when the images alone are too many tokens."""
        shapes = ", ".join(f"{width} x {height}" for width, height in sizes)
        try:
            needed, limit = self.needed(sizes), self.data.max_prompt_length
        except ImageShapeError as error:
            message = f"row {row}: of its images ({shapes}) one cannot be taken: {error}, or remove the row"
            raise DataFault(message, field="data.image_column", row=row) from error
        if needed is None or limit is None or needed < limit:
            return
        fitting = self.fitting_pixels(sizes)
        remedy = f"data.max_pixels = {fitting} would fit" if fitting else "no data.max_pixels makes them fit"
        raise DataFault(
            f"row {row}: its images ({shapes}) are {needed} tokens, and a prompt of data.max_prompt_length = {limit} "
            f"has to hold its text too; {remedy}; or raise the length or remove the row",
            field="data.max_prompt_length",
            row=row,
        )

    def fitting_pixels(self, sizes: Sizes) -> int | None:
        """A max_pixels with which the images leave room for text, within 2 % of the largest; None when none does."""
        limit = self.data.max_prompt_length or 0
        pixels = float(max(width * height for width, height in sizes))
        least = self.data.min_pixels or 1
        while pixels >= least:
            bounded = replace(self, data=self.data.model_copy(update={"max_pixels": int(pixels)}))
            with suppress(ImageShapeError):  # of a sliver that is one pixel wide by now
                needed = bounded.needed(sizes)
                if needed is not None and needed < limit:
                    return int(pixels)
            pixels *= 0.98
        return None
