"""Images as they come from a dataset: original bytes, checked by their header, decoded on demand to upright RGB."""

import base64
import binascii
import hashlib
import io
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

import numpy as np
from PIL import ExifTags, Image

from training.errors import DatasetError
from training.pixels import png_of_array, png_of_image
from training.records import ImageRecord

ImageFormat = Literal["png", "jpeg", "webp", "gif"]
FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
MAX_PIXELS = 40_000_000
MAX_BYTES = 64 * 1024 * 1024

# base64 of the magic numbers of FORMATS: tells inline image text from a path, "/9j/..." from an absolute one
_BASE64_HEADS = ("iVBORw0KGgo", "/9j/", "UklGR", "R0lGOD")
_SHORTEST_BASE64 = 48

# what Pillow's parsers were seen to raise on corrupt bytes
_CORRUPT = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    OverflowError,
    EOFError,
    struct.error,
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
)

_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@dataclass(frozen=True, slots=True)
class SourceImage:
    """One image with its original bytes; width and height are those of the upright picture."""

    sha256: str
    width: int
    height: int
    format: ImageFormat
    data: bytes = field(repr=False)
    where: str = field(default="", compare=False, repr=False)

    def open(self) -> Image.Image:
        """Decode to a new RGB image: first frame, EXIF orientation applied, transparency on white.

        Raises DatasetError that names the row when the pixels are corrupt.
        """
        try:
            with Image.open(io.BytesIO(self.data), formats=FORMATS) as image:
                turn = _UPRIGHT.get(_orientation(image))
                rgb = _to_rgb(image)
        except _CORRUPT as error:
            raise _corrupt(self.where, error) from error
        # what is left in info, the orientation above all, would be applied a second time by the next reader
        rgb.info = {}
        return rgb if turn is None else rgb.transpose(turn)

    def record(self) -> ImageRecord:
        return ImageRecord(
            sha256=self.sha256, width=self.width, height=self.height, format=self.format, bytes=len(self.data)
        )


def read_image(value: object, *, root: Path | None, where: str, folder: Path | None = None) -> SourceImage:
    """Read one image of a dataset row without decoding its pixels.

    `value` is encoded bytes, `{"bytes": ..., "path": ...}`, a path, a data: URL, base64 text, a PIL image
    or an array: rows x columns (x 1, 3 or 4 channels) of uint8, bool, or floats from 0 to 1.
    A relative path starts at `folder` (else at `root`); what it resolves to must lie in `root`, unless that is None.
    `where` names row and column in the DatasetError of everything that is missing, too large or no image.
    """
    match value:
        case bytes():
            data = value
        case Image.Image() | np.ndarray():
            data = _pixels(value, where)
        case Mapping() if isinstance(value.get("bytes"), bytes):
            data = value["bytes"]
        case Mapping() if isinstance(value.get("path"), str):
            return read_image(value["path"], root=root, where=where, folder=folder)
        case str():
            data = _inline_bytes(value, where)
            if data is None:
                data = _file_bytes(locate(value, root=root, where=where, folder=folder), where)
        case _:
            raise DatasetError(
                f"{where}: expected an image as path, bytes, base64 or data: URL, got {type(value).__name__}"
            )
    return _inspect(data, where)


def image_size(value: object, *, root: Path | None, where: str, folder: Path | None = None) -> tuple[int, int]:
    """Width and height of an image as `read_image` would give it; of a file only the header is read."""
    if isinstance(value, Mapping) and not isinstance(value.get("bytes"), bytes):
        value = value.get("path")
    if isinstance(value, str) and not is_inline(value):
        return _header(locate(value, root=root, where=where, folder=folder), where)[:2]
    image = read_image(value, root=root, where=where, folder=folder)
    return image.width, image.height


def is_inline(value: str) -> bool:
    """Whether a text holds the image itself rather than a path to it."""
    return value.startswith("data:") or (value.startswith(_BASE64_HEADS) and len(value) >= _SHORTEST_BASE64)


def locate(value: str, *, root: Path | None, where: str, folder: Path | None = None) -> Path:
    """The existing file that a path names.  Raises DatasetError when it is missing or lies outside of `root`.

    `root` is resolved already: it is compared with the path after all links.
    """
    if "://" in value:
        raise DatasetError(
            f"{where}: {_short(value)} is a URL, and none is ever opened; download the image and name the file"
        )
    try:
        path = Path(os.path.realpath((folder or root or Path()) / value))
        if root is not None and not path.is_relative_to(root):
            raise DatasetError(
                f"{where}: {_short(value)} lies outside the dataset folder {root}; move the image into it"
            )
        found = path.is_file()
    except (OSError, ValueError) as error:  # too long, NUL
        if isinstance(error, DatasetError):
            raise
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise DatasetError(f"{where}: {_short(value)} is no usable path ({reason}); name an image file") from error
    if not found:
        raise DatasetError(f"{where}: there is no file {path}; add it, correct the path or remove the row")
    return path


def _inspect(data: bytes, where: str) -> SourceImage:
    if len(data) > MAX_BYTES:
        raise DatasetError(f"{where}: the image has {len(data):,} bytes, at most {MAX_BYTES:,} are read; shrink it")
    width, height, name = _header(io.BytesIO(data), where)
    return SourceImage(
        sha256=hashlib.sha256(data).hexdigest(),
        width=width,
        height=height,
        format=cast(ImageFormat, "jpeg" if name == "MPO" else name.lower()),
        data=data,
        where=where,
    )


def _header(source: io.BytesIO | Path, where: str) -> tuple[int, int, str]:
    """Width and height of the upright picture and the format, without its pixels."""
    try:
        with Image.open(source, formats=FORMATS) as image:
            (width, height), turn, name = image.size, _orientation(image), image.format or ""
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DatasetError(f"{where}: {error}; at most {MAX_PIXELS:,} pixels are decoded, scale it") from error
    except _CORRUPT as error:
        raise _corrupt(where, error) from error
    if width * height > MAX_PIXELS:
        raise DatasetError(
            f"{where}: the image is {width} x {height}, at most {MAX_PIXELS:,} pixels are decoded; scale it"
        )
    return (height, width, name) if turn in (5, 6, 7, 8) else (width, height, name)


def _orientation(image: Image.Image) -> int:
    # from the header alone: for a PNG without the tag Pillow's getexif() decodes every pixel in search of one
    if image.format == "PNG" and "exif" not in image.info:
        return 1
    turn = image.getexif().get(ExifTags.Base.Orientation, 1)
    return turn if isinstance(turn, int) else 1


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):
        # 16 bits a sample, which convert() would clip to white
        return image.convert("I").point(lambda value: value * (1 / 256)).convert("L").convert("RGB")
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        page = Image.new("RGBA", rgba.size, "white")
        return Image.alpha_composite(page, rgba).convert("RGB")
    return image.convert("RGB")


def _inline_bytes(value: str, where: str) -> bytes | None:
    """The bytes that a text holds, or None when the text is a path."""
    if not is_inline(value):
        return None
    is_url = value.startswith("data:")
    head, _, body = value.partition(",") if is_url else ("", "", value)
    try:
        if is_url and not head.endswith(";base64"):
            raise binascii.Error("not base64")
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        if not is_url:
            return None
        raise DatasetError(f"{where}: expected data:image/png;base64,..., got {_short(value)} ({error})") from error


def _file_bytes(path: Path, where: str) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DatasetError(f"{where}: cannot read {path} ({error.strerror}); check its permissions") from error


def _pixels(value: Image.Image | np.ndarray, where: str) -> bytes:
    try:
        return png_of_image(value) if isinstance(value, Image.Image) else png_of_array(value)
    except _CORRUPT as error:
        raise DatasetError(f"{where}: {error}") from error


def _corrupt(where: str, error: Exception) -> DatasetError:
    reason = "no PNG, JPEG, WebP or GIF" if isinstance(error, Image.UnidentifiedImageError) else str(error)
    return DatasetError(f"{where}: the image cannot be decoded ({reason}); replace it or remove the row")


def _short(value: str) -> str:
    return repr(value if len(value) <= 80 else value[:77] + "...")
