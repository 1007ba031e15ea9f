"""Images lie on disk once, by content, whole or not at all, with smaller pictures beside them."""

import hashlib
import io
import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import ExifTags, Image

from app.store import MediaError, MediaStore, StoredImage
from app.store.queries.images import get_image
from tests.store.rows import begin, group, picture, record, sample, start, step

RED = picture("red", size=(800, 600))
SHA = hashlib.sha256(RED).hexdigest()


@pytest.fixture
def media(tmp_path: Path) -> MediaStore:
    return MediaStore(tmp_path / "media")


def files(media: MediaStore) -> list[str]:
    return sorted(str(path.relative_to(media.root)) for path in media.root.rglob("*") if path.is_file())


def opened(media: MediaStore, sha256: str, size: str) -> Image.Image:
    found = media.open(sha256, size)
    assert found is not None
    with Image.open(found.path) as image:
        image.load()
        return image


def test_an_image_is_stored_by_its_content(media: MediaStore):
    assert media.put_bytes(RED, format="png") == StoredImage(SHA, 800, 600, "png", len(RED))
    full = media.open(SHA, "full")
    assert full is not None
    assert full.path.read_bytes() == RED
    assert (full.mime, full.etag) == ("image/png", f"{SHA}-full")
    assert full.path.relative_to(media.root) == Path(SHA[:2], SHA[2:4], f"{SHA}.png")
    assert media.has(SHA)


def test_the_same_content_is_stored_once(media: MediaStore):
    media.put_bytes(RED, format="png")
    before = {name: (media.root / name).stat().st_mtime_ns for name in files(media)}
    media.put_bytes(RED, format="png")
    assert {name: (media.root / name).stat().st_mtime_ns for name in files(media)} == before
    assert len(before) == 2


def test_a_thumbnail_is_made_at_once_and_the_middle_size_when_it_is_asked_for(media: MediaStore):
    media.put_bytes(RED, format="png")
    folder = f"{SHA[:2]}/{SHA[2:4]}"
    assert files(media) == [f"{folder}/{SHA}.png", f"{folder}/{SHA}.thumb.webp"]
    thumb, middle = opened(media, SHA, "thumb"), opened(media, SHA, "md")
    assert (thumb.format, thumb.size, middle.size) == ("WEBP", (192, 144), (512, 384))
    assert files(media) == [f"{folder}/{SHA}.{name}" for name in ("md.webp", "png", "thumb.webp")]
    small = media.put_bytes(picture("blue", size=(20, 10)), format="png")
    assert opened(media, small.sha256, "md").size == (20, 10)


@pytest.mark.parametrize("format", ["png", "jpeg", "webp", "gif"])
def test_every_format_keeps_its_bytes(media: MediaStore, format: str):
    data = picture("green", format=format.upper())
    stored = media.put_bytes(data, format=format)
    full = media.open(stored.sha256, "full")
    assert full is not None
    assert (full.mime, full.path.read_bytes()) == (f"image/{format}", data)
    red, green, blue = opened(media, stored.sha256, "thumb").convert("RGB").getpixel((16, 12))
    assert green > 100 > max(red, blue)


def test_smaller_pictures_stand_upright_and_tell_nothing_of_the_camera(media: MediaStore):
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    exif[ExifTags.Base.Make] = "camera"
    buffer = io.BytesIO()
    Image.new("RGB", (400, 100), "red").save(buffer, "JPEG", exif=exif)
    stored = media.put_bytes(buffer.getvalue(), format="jpeg")
    assert (stored.width, stored.height) == (100, 400)
    thumb = opened(media, stored.sha256, "thumb")
    assert thumb.size == (48, 192)
    assert not thumb.getexif()


def test_a_file_is_taken_over_and_its_name_must_tell_the_truth(media: MediaStore, tmp_path: Path):
    honest = tmp_path / f"{SHA}.png"
    honest.write_bytes(RED)
    assert media.put_file(honest).sha256 == SHA
    named = tmp_path / "holiday.png"
    named.write_bytes(picture("blue"))
    assert media.put_file(named).format == "png"
    liar = tmp_path / f"{'0' * 64}.png"
    liar.write_bytes(RED)
    with pytest.raises(MediaError, match="damaged"):
        media.put_file(liar)
    with pytest.raises(MediaError, match="No such file"):
        media.put_file(tmp_path / "missing.png")


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"", "cannot be decoded"), (b"<svg/>", "cannot be decoded"), (RED[:200], "cannot be decoded")],
    ids=["empty", "svg", "torn"],
)
def test_what_is_no_image_is_refused_and_leaves_nothing(media: MediaStore, data: bytes, message: str):
    with pytest.raises(MediaError, match=message):
        media.put_bytes(data, format="png")
    assert not media.root.exists()


def test_the_format_must_be_the_one_announced(media: MediaStore):
    with pytest.raises(MediaError, match="format jpeg, got png"):
        media.put_bytes(RED, format="jpeg")
    assert not media.root.exists()


@pytest.mark.parametrize(
    "name", ["0" * 64, "", "..", "../../etc/passwd", SHA.upper(), SHA[:-1], SHA + "\n", f"{SHA}.png"]
)
@pytest.mark.parametrize("size", ["thumb", "md", "full"])
def test_nothing_else_is_opened(media: MediaStore, name: str, size: str):
    media.put_bytes(RED, format="png")
    assert media.open(name, size) is None


def test_a_thumbnail_that_was_lost_is_made_again(media: MediaStore):
    media.put_bytes(RED, format="png")
    found = media.open(SHA, "thumb")
    assert found is not None
    found.path.unlink()
    assert opened(media, SHA, "thumb").size == (192, 144)


def test_a_write_that_fails_leaves_no_piece(media: MediaStore, monkeypatch: pytest.MonkeyPatch):
    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        media.put_bytes(RED, format="png")
    assert files(media) == []
    assert not media.has(SHA)


def test_many_writers_of_one_image_do_not_hinder_each_other(media: MediaStore):
    noise = Image.frombytes("RGB", (64, 64), random.Random(0).randbytes(64 * 64 * 3))
    buffer = io.BytesIO()
    noise.save(buffer, "PNG")
    with ThreadPoolExecutor(8) as pool:
        stored = set(pool.map(lambda _: media.put_bytes(buffer.getvalue(), format="png"), range(16)))
    assert len(stored) == 1
    assert len(files(media)) == 2


def test_files_can_be_read_by_other_users_as_the_umask_says(media: MediaStore):
    before = os.umask(0o027)
    try:
        media.put_bytes(RED, format="png")
    finally:
        os.umask(before)
    assert {(media.root / name).stat().st_mode & 0o777 for name in files(media)} == {0o640}


def test_what_is_known_of_an_image(store, run_id: int):
    begin(store, run_id)
    record(store, run_id, [start(), step(1, group(sample("q", "red"), ("a", 0.0)))])
    data = picture("red")
    with store.read() as session:
        sha256 = hashlib.sha256(data).hexdigest()
        assert get_image(session, sha256) == StoredImage(sha256, 32, 24, "png", len(data))
        assert get_image(session, "0" * 64) is None
