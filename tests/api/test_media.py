"""Images by content hash: right bytes, right headers, nothing else from the disk."""

import hashlib
import io

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from app.runs import Services
from tests.api.refusals import assert_refusal
from tests.api.rows import png

RED = hashlib.sha256(png("red")).hexdigest()


def test_full_is_the_original_bytes(client: TestClient, run_id: int):
    answer = client.get(f"/media/{RED}/full")
    assert answer.status_code == 200
    assert answer.content == png("red")
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("size", ["thumb", "md"])
def test_smaller_sizes_show_the_same_picture(client: TestClient, run_id: int, size: str):
    answer = client.get(f"/media/{RED}/{size}")
    assert answer.headers["content-type"] == "image/webp"
    with Image.open(io.BytesIO(answer.content)) as image:
        assert image.size == (32, 24)
        red, green, blue = image.convert("RGB").getpixel((16, 12))
    assert red > 200
    assert max(green, blue) < 50


@pytest.mark.parametrize("size", ["thumb", "md", "full"])
def test_browsers_may_keep_an_image_for_ever(client: TestClient, run_id: int, size: str):
    first = client.get(f"/media/{RED}/{size}")
    assert first.headers["cache-control"] == "private, max-age=31536000, immutable"
    again = client.get(f"/media/{RED}/{size}", headers={"if-none-match": first.headers["etag"]})
    assert again.status_code == 304
    assert again.content == b""


def test_sizes_have_tags_of_their_own(client: TestClient, run_id: int):
    tags = {client.get(f"/media/{RED}/{size}").headers["etag"] for size in ("thumb", "md", "full")}
    assert len(tags) == 3


def test_nothing_else_is_served(client: TestClient, run_id: int):
    for path in (
        f"/media/{'0' * 64}/full",
        f"/media/{RED}/original",
        f"/media/{RED.upper()}/full",
        f"/media/{RED[:63]}/full",
        "/media/..%2f..%2fvlmscope.sqlite3/full",
        "/media/%2e%2e%2f%2e%2e/full",
        "/media/%252e%252e/full",
        "/media/..%5c..%5cx/full",
        f"/media/{RED}%00/full",
        f"/media/{RED}/..%2f..%2fetc%2fpasswd",
        "/media//etc/passwd",
    ):
        answer = client.get(path)
        assert answer.status_code in (404, 422), path
        assert_refusal(answer, answer.status_code, {404: "not_found", 422: "invalid"}[answer.status_code])


def test_a_damaged_file_is_refused(client: TestClient, services: Services, run_id: int):
    for path in services.store.media.root.rglob(f"{RED}.*"):
        path.write_bytes(b"not a picture") if path.suffix == ".png" else path.unlink()
    assert_refusal(client.get(f"/media/{RED}/md"), 404, "damaged")
