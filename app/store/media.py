"""Image files by content hash: the original bytes, and two smaller pictures of each to browse by."""

import hashlib
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from app.store.errors import MediaError
from app.store.files import write_once
from training.errors import DatasetError
from training.images import SourceImage, read_image

Size = Literal["thumb", "md", "full"]

_MIME = {"png": "image/png", "jpeg": "image/jpeg", "webp": "image/webp", "gif": "image/gif"}
_SIDES: dict[Size, int] = {"thumb": 192, "md": 512}
_WEBP_QUALITY = 75
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class StoredImage:
    """An image that is safe on disk; width and height are those of the upright picture."""

    sha256: str
    width: int
    height: int
    format: str
    bytes: int


@dataclass(frozen=True, slots=True)
class MediaFile:
    """A file to serve; its content never changes."""

    path: Path
    mime: str
    etag: str


class MediaStore:
    """Keeps images below `root` as `ab/cd/<sha256>.<format>`, with `.thumb.webp` and `.md.webp` beside them."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put_file(self, path: Path) -> StoredImage:
        """Store an image file; when its name is a content hash, its bytes must have it.  Raises MediaError."""
        try:
            data = path.read_bytes()
        except OSError as error:
            raise MediaError(f"cannot read the image {path}: {error.strerror}") from error
        if _HASH.fullmatch(path.stem) and hashlib.sha256(data).hexdigest() != path.stem:
            raise MediaError(f"the bytes of {path} do not have the hash that its name promises; the file is damaged")
        return self._put(_read(data, str(path)))

    def put_bytes(self, data: bytes, *, format: str) -> StoredImage:
        """Store the encoded bytes of an image.  Raises MediaError when they are none of this format."""
        image = _read(data, "an image")
        if image.format != format:
            raise MediaError(f"expected an image of format {format}, got {image.format}; name the format that it has")
        return self._put(image)

    def has(self, sha256: str) -> bool:
        """Whether the original bytes are stored."""
        return self._original(sha256) is not None

    def open(self, sha256: str, size: Size) -> MediaFile | None:
        """The file of an image in a size, made now when it is missing; None when there is no such image.

        Raises MediaError when the original turns out to be damaged.
        """
        original = self._original(sha256) if _HASH.fullmatch(sha256) else None
        if original is None:
            return None
        etag = f"{sha256}-{size}"
        if size == "full":
            return MediaFile(original, _MIME[original.suffix[1:]], etag)
        path = self._smaller(sha256, size)
        if not path.exists():
            _write_smaller(_read(original.read_bytes(), str(original)), path, _SIDES[size])
        return MediaFile(path, _MIME["webp"], etag)

    def _put(self, image: SourceImage) -> StoredImage:
        original = self._folder(image.sha256) / f"{image.sha256}.{image.format}"
        thumb = self._smaller(image.sha256, "thumb")
        if not thumb.exists():
            _write_smaller(image, thumb, _SIDES["thumb"])  # first: it finds out whether the pixels can be decoded
        if not original.exists():
            write_once(original, image.data)
        return StoredImage(image.sha256, image.width, image.height, image.format, len(image.data))

    def _original(self, sha256: str) -> Path | None:
        paths = (self._folder(sha256) / f"{sha256}.{name}" for name in _MIME)
        return next((path for path in paths if path.exists()), None)

    def _smaller(self, sha256: str, size: Size) -> Path:
        return self._folder(sha256) / f"{sha256}.{size}.webp"

    def _folder(self, sha256: str) -> Path:
        return self.root / sha256[:2] / sha256[2:4]


def _read(data: bytes, where: str) -> SourceImage:
    try:
        return read_image(data, root=None, where=where)
    except DatasetError as error:
        raise MediaError(str(error)) from error


def _write_smaller(image: SourceImage, path: Path, side: int) -> None:
    """Write the upright picture, at most `side` pixels wide and high, without any of the original's metadata."""
    try:
        picture = image.open()
    except DatasetError as error:
        raise MediaError(str(error)) from error
    picture.thumbnail((side, side))
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", quality=_WEBP_QUALITY)
    write_once(path, buffer.getvalue())
