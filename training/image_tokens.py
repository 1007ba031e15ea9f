"""How many image tokens a picture of some size becomes: what each kind of processor does, in plain numbers.

Used where no pixel may be decoded and torch is not at hand.  The placeholders alone are counted, not the tokens that a
processor writes around them.  `settings` are the processor's own, see `training.processor_settings`; a setting that is
missing or of another kind raises whatever it raises, which means that the count cannot be told.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

Settings = Mapping[str, Any]
ImageTokens = Callable[[Settings, int, int], int]
"""(settings, width, height) -> tokens.  Raises ImageShapeError for a picture that the processor refuses."""

_STEEPEST = 200
_LONGEST_SIDE = 4096
_MOST_SQUARES = 256


class ImageShapeError(ValueError):
    """A picture whose shape a processor refuses."""


def merged_patches(settings: Settings, width: int, height: int) -> int:
    """Scaled to multiples of patch * merge between two areas; merge x merge patches become one token."""
    if max(width, height) > _STEEPEST * min(width, height):
        raise ImageShapeError(f"its sides are more than {_STEEPEST} : 1, which the model's processor refuses; crop it")
    unit = settings["patch_size"] * settings["merge_size"]
    size = settings.get("size") or {}
    least = settings.get("min_pixels") or size["shortest_edge"]
    most = settings.get("max_pixels") or size["longest_edge"]
    rows, columns = round(height / unit), round(width / unit)
    if rows * columns * unit * unit > most:
        shrink = math.sqrt(height * width / most)
        rows, columns = (max(1, math.floor(side / shrink / unit)) for side in (height, width))
    elif rows * columns * unit * unit < least:
        grow = math.sqrt(least / (height * width))
        rows, columns = (math.ceil(side * grow / unit) for side in (height, width))
    return rows * columns


def one_square(settings: Settings, width: int, height: int) -> int:
    """Scaled to one square whatever the size (not told for crops of it by pan and scan)."""
    del width, height
    if settings.get("do_pan_and_scan"):
        raise KeyError("pan and scan")
    return settings["image_seq_length"]


def cropped_square(settings: Settings, width: int, height: int) -> int:
    """Scaled and cropped to one square, one token per patch."""
    del width, height
    crop = settings["crop_size"]
    if not settings["do_center_crop"]:
        raise KeyError("do_center_crop")
    rows, columns = (crop[side] // settings["patch_size"] for side in ("height", "width"))
    return rows * columns + _class_tokens(settings)


def grid_with_newlines(settings: Settings, width: int, height: int) -> int:
    """The whole picture as one square, and its tiles without their padding, a token at the end of each line."""
    crop = settings.get("crop_size") or settings["size"]
    side = crop.get("height") or crop["shortest_edge"]
    patches = anyres_patches(settings["image_grid_pinpoints"], side, settings["patch_size"], width, height)
    return patches + _class_tokens(settings)


def anyres_patches(pinpoints: Sequence[Sequence[int]], side: int, patch: int, width: int, height: int) -> int:
    """LLaVA-NeXT (arXiv 2310.03744 and its 1.6): base square, unpadded tiles and line ends."""
    per_side = side // patch
    tall, wide = _best_resolution(pinpoints, width, height)
    rows, columns = tall // side * per_side, wide // side * per_side
    if width / height > columns / rows:
        rows -= (rows - int(round(height * (columns / width), 7))) // 2 * 2
    else:
        columns -= (columns - int(round(width * (rows / height), 7))) // 2 * 2
    return rows * columns + rows + per_side * per_side


def split_squares(settings: Settings, width: int, height: int) -> int:
    """Idefics3 (arXiv 2408.12637): scaled to a longest side, cut into squares; the whole picture is one more."""
    squares = 1
    if settings["do_image_splitting"]:
        square = settings["max_image_size"]["longest_edge"]
        width, height = _longest_side(width, height, settings["size"]["longest_edge"])
        ratio = width / height
        if width >= height:
            columns = math.ceil(width / square)
            rows = math.ceil(int(columns * square / ratio) / square)
        else:
            rows = math.ceil(height / square)
            columns = math.ceil(int(rows * square * ratio) / square)
        squares = rows * columns + 1 if rows * columns > 1 else 1
    return squares * settings["image_seq_len"]


def closest_grid(settings: Settings, width: int, height: int) -> int:
    """InternVL (arXiv 2404.16821): the grid of squares with the closest aspect ratio; the whole picture is one more."""
    if settings["max_patches"] > _MOST_SQUARES:
        raise KeyError("max_patches")
    area = settings["size"]["height"] * settings["size"]["width"]
    squares, closest = 1, math.inf
    for columns, rows in _grids(settings["min_patches"], settings["max_patches"]):
        distance = abs(width / height - columns / rows)
        roomy = distance == closest and width * height > 0.5 * area * columns * rows
        if distance < closest or roomy:
            squares, closest = columns * rows, distance
    return (squares + 1 if squares > 1 else 1) * settings["image_seq_length"]


def _class_tokens(settings: Settings) -> int:
    """Tokens of the vision encoder beside its patches, less the one that the default strategy leaves out."""
    return settings["num_additional_image_tokens"] - (settings["vision_feature_select_strategy"] == "default")


def _best_resolution(pinpoints: Sequence[Sequence[int]], width: int, height: int) -> Sequence[int]:
    """The (height, width) that keeps most of the picture and, among equals, wastes least."""

    def merit(resolution: Sequence[int]) -> tuple[int, int]:
        tall, wide = resolution
        scale = min(wide / width, tall / height)
        kept = min(int(width * scale) * int(height * scale), width * height)
        return kept, kept - tall * wide

    return max(pinpoints, key=merit)


def _longest_side(width: int, height: int, longest: int) -> tuple[int, int]:
    """Scaled so that the longer side is `longest`, the other one even; then below the processor's own bound."""
    ratio = width / height
    if width >= height:
        width, height = longest, int(longest / ratio)
        height += height % 2
    else:
        width, height = int(longest * ratio), longest
        width += width % 2
    width, height = max(width, 1), max(height, 1)
    ratio = width / height
    if width >= height and width > _LONGEST_SIDE:
        width, height = _LONGEST_SIDE, int(_LONGEST_SIDE / ratio)
    elif height > width and height > _LONGEST_SIDE:
        width, height = int(_LONGEST_SIDE * ratio), _LONGEST_SIDE
    return max(width, 1), max(height, 1)


@cache
def _grids(least: int, most: int) -> list[tuple[int, int]]:
    """All (columns, rows) of between `least` and `most` squares, the smaller first."""
    sides = range(1, most + 1)
    grids = [(columns, rows) for columns in sides for rows in sides if least <= columns * rows <= most]
    return sorted(grids, key=lambda grid: grid[0] * grid[1])
