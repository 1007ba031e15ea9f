"""Images of dataset rows: what is accepted, what is refused and how a refusal reads."""

import base64
import hashlib
import io
import random
import zlib

import numpy as np
import pytest
from PIL import Image

from tests.training.pictures import encoded, left_red_right_blue, plain_picture
from training.errors import DatasetError
from training.images import MAX_BYTES, SourceImage, image_size, read_image

WHERE = "row 3, column 'image'"
RED, WHITE = (255, 0, 0), (255, 255, 255)


def read(value: object, **options) -> SourceImage:
    return read_image(value, **({"root": None, "where": WHERE} | options))


def refusal(value: object, **options) -> str:
    with pytest.raises(DatasetError) as caught:
        read(value, **options).open()
    return str(caught.value)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_every_format_keeps_its_bytes_and_decodes_to_rgb(kind):
    data = plain_picture(kind=kind)
    image = read(data)
    assert image.data == data
    assert image.sha256 == hashlib.sha256(data).hexdigest()
    assert (image.width, image.height, image.format) == (8, 6, kind.lower())
    picture = image.open()
    assert (picture.mode, picture.size) == ("RGB", (8, 6))
    assert all(abs(a - b) <= 2 for a, b in zip(picture.getpixel((4, 3)), RED, strict=True))


def test_the_same_image_is_read_from_bytes_path_base64_data_url_mapping_and_pil(tmp_path):
    data = encoded(left_red_right_blue())
    (tmp_path / "a.png").write_bytes(data)
    text = base64.b64encode(data).decode()
    values = [
        data,
        {"bytes": data, "path": "elsewhere.png"},
        {"bytes": None, "path": "a.png"},
        "a.png",
        str(tmp_path / "a.png"),
        text,
        f"data:image/png;base64,{text}",
    ]
    assert {read(value, root=tmp_path).sha256 for value in values} == {hashlib.sha256(data).hexdigest()}
    assert read(left_red_right_blue()).open().tobytes() == left_red_right_blue().tobytes()


def test_base64_of_a_jpeg_begins_like_an_absolute_path_and_is_still_an_image(tmp_path):
    text = base64.b64encode(plain_picture(kind="JPEG")).decode()
    assert text.startswith("/9j/")
    assert read(text, root=tmp_path).format == "jpeg"


def test_a_relative_path_starts_at_the_folder_and_may_go_up_within_the_root(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "rows").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(plain_picture())
    assert read("../images/a.png", root=tmp_path, folder=tmp_path / "rows").width == 8


@pytest.mark.parametrize("value", ["../secret.png", "/etc/passwd", "link.png"])
def test_a_path_out_of_the_root_is_refused_also_by_a_link(tmp_path, value):
    root = tmp_path / "data"
    root.mkdir()
    (tmp_path / "secret.png").write_bytes(plain_picture())
    (root / "link.png").symlink_to(tmp_path / "secret.png")
    message = refusal(value, root=root)
    assert WHERE in message
    assert "outside the dataset folder" in message


def test_a_neighbour_that_shares_the_roots_prefix_is_outside(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data-secret").mkdir()
    (tmp_path / "data-secret" / "a.png").write_bytes(plain_picture())
    assert "outside" in refusal("../data-secret/a.png", root=tmp_path / "data")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("gone.png", "there is no file"),
        ("http://169.254.169.254/a.png", "URL"),
        ("file:///etc/passwd", "URL"),
        ("a\0b", "no usable path"),
        ("x" * 5000, "no usable path"),
        ("data:image/png,plain", "base64"),
        ("data:image/png;base64,####", "base64"),
        (7, "got int"),
        ({"url": "x"}, "got dict"),
        (np.zeros((3, 8, 6), np.uint8), "got the shape (3, 8, 6); put the channels last"),
        (np.zeros((0, 4), np.uint8), "got the shape (0, 4)"),
        (np.full((4, 4, 3), 255.0), "floats from 0 to 1, got float64 from 255.0 to 255.0; convert it"),
        (np.full((4, 4), np.nan), "floats from 0 to 1, got float64 from nan to nan"),
        (np.zeros((4, 4), np.int64), "got int64 from 0 to 0"),
        (Image.new("F", (4, 4)), "mode F has no fixed range; convert it"),
        (b"", "cannot be decoded"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "no PNG, JPEG, WebP or GIF"),
        (encoded(Image.new("RGB", (4, 4)), "BMP"), "no PNG, JPEG, WebP or GIF"),
        (b"\x89PNG\r\n\x1a\n" + bytes(MAX_BYTES), "shrink"),
    ],
)
def test_what_is_no_usable_image_is_refused_with_row_and_remedy(tmp_path, value, said):
    message = refusal(value, root=tmp_path)
    assert WHERE in message
    assert said in message
    assert len(message) < 400


def test_a_loop_of_links_is_refused(tmp_path):
    (tmp_path / "a.png").symlink_to(tmp_path / "b.png")
    (tmp_path / "b.png").symlink_to(tmp_path / "a.png")
    assert WHERE in refusal("a.png", root=tmp_path)


def test_a_decompression_bomb_is_refused_by_its_header():
    bomb = encoded(Image.new("1", (9000, 9000)))
    assert len(bomb) < 20_000
    assert "9000 x 9000" in refusal(bomb)
    head = bytearray(encoded(Image.new("1", (8, 8))))
    head[16:24] = (60_000).to_bytes(4, "big") * 2
    head[29:33] = zlib.crc32(head[12:29]).to_bytes(4, "big")
    assert "3600000000 pixels" in refusal(bytes(head))
    assert "at most 40,000,000 pixels are decoded, scale it" in refusal(bytes(head))


@pytest.mark.parametrize("kept", range(0, 100, 10))
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_a_truncated_file_is_refused_at_any_length(kind, kept):
    noise = Image.frombytes("RGB", (64, 64), random.Random(1).randbytes(64 * 64 * 3))
    data = encoded(noise, kind)
    assert WHERE in refusal(data[: len(data) * kept // 100])


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_damaged_bytes_give_an_image_or_a_refusal_and_never_another_error(kind):
    def decodes(data: bytes) -> bool:
        try:
            return read(data).open().mode == "RGB"
        except DatasetError:
            return False

    chance = random.Random(0)
    data = encoded(Image.effect_noise((32, 32), 50).convert("RGB"), kind)
    outcomes = set()
    for _ in range(150):
        spoiled = bytearray(data)
        for _ in range(chance.randint(1, 8)):
            spoiled[chance.randrange(len(spoiled))] = chance.randrange(256)
        outcomes.add(decodes(bytes(spoiled)))
    assert False in outcomes


def test_exif_orientation_turns_the_picture_once():
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: show it a quarter turn clockwise
    data = encoded(left_red_right_blue(), "JPEG", exif=exif, quality=95)
    image = read(data)
    assert (image.width, image.height) == (8, 16)
    picture = image.open()
    assert picture.size == (8, 16)
    red, blue = picture.getpixel((4, 2)), picture.getpixel((4, 13))
    assert red[0] > 200 > red[2]
    assert blue[2] > 200 > blue[0]
    assert "exif" not in picture.info


def test_transparent_pixels_are_white_as_on_a_page():
    image = Image.new("RGBA", (4, 4), (0, 0, 0, 0))
    image.putpixel((0, 0), (255, 0, 0, 255))
    picture = read(encoded(image)).open()
    assert picture.getpixel((3, 3)) == WHITE
    assert picture.getpixel((0, 0)) == RED


def test_sixteen_bits_a_sample_keep_their_brightness():
    picture = read(encoded(Image.new("I;16", (4, 4), 0x8000))).open()
    assert picture.getpixel((1, 1)) == (128, 128, 128)


@pytest.mark.parametrize("mode", ["L", "LA", "P", "1", "CMYK"])
def test_other_modes_become_rgb(mode):
    kind = "JPEG" if mode == "CMYK" else "PNG"
    assert read(encoded(Image.new(mode, (4, 4)), kind)).open().mode == "RGB"


@pytest.mark.parametrize("kind", ["GIF", "WEBP"])
def test_an_animation_shows_its_first_frame(kind):
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "blue")]
    options = {"save_all": True, "append_images": frames[1:], "duration": 100}
    picture = read(encoded(frames[0], kind, **options)).open()
    assert picture.getpixel((4, 4))[0] > 200 > picture.getpixel((4, 4))[2]


def test_each_open_gives_a_picture_of_its_own():
    image = read(plain_picture())
    image.open().paste("blue", (0, 0, 8, 6))
    assert image.open().getpixel((0, 0)) == RED


def test_the_record_has_hash_size_and_length():
    data = plain_picture()
    record = read(data).record()
    assert (record.width, record.height, record.format, record.bytes) == (8, 6, "png", len(data))


@pytest.mark.parametrize("shape", [(6, 8), (6, 8, 1), (6, 8, 3), (6, 8, 4)])
@pytest.mark.parametrize("kind", [np.uint8, np.float32, bool])
def test_arrays_are_pictures(shape, kind):
    """Grey, RGB or RGBA; 0 to 255, or 0.0 to 1.0, or no and yes; white where all of it is at its top."""
    top = {np.uint8: 255, np.float32: 1.0, bool: True}[kind]
    array = np.zeros(shape, kind)
    array[:, 4:] = top
    if shape == (6, 8, 4):
        array[..., 3] = top
    kept = array.copy()
    image = read(array)
    assert (image.width, image.height, image.format) == (8, 6, "png")
    assert image.open().getpixel((0, 0)) == (0, 0, 0)
    assert image.open().getpixel((7, 0)) == WHITE
    assert np.array_equal(array, kept)


def test_half_of_a_float_arrays_range_is_half_of_white():
    assert read(np.full((2, 2), 0.5)).open().getpixel((0, 0)) == (128, 128, 128)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "I;16", "I"])
def test_a_pil_image_of_any_mode_is_taken_and_left_as_it_was(mode):
    image = Image.new(mode, (4, 4))
    before = image.tobytes()
    assert read(image).open().mode == "RGB"
    assert (image.mode, image.tobytes()) == (mode, before)


def test_a_pil_image_is_turned_upright_as_a_file_would_be():
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = Image.open(io.BytesIO(encoded(left_red_right_blue(), "JPEG", exif=exif, quality=95)))
    assert read(turned).open().size == (8, 16)


@pytest.mark.parametrize("form", ["path", "bytes", "mapping", "data url", "pil"])
def test_the_size_alone_is_that_of_the_upright_picture(tmp_path, form):
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encoded(left_red_right_blue(), "JPEG", exif=exif)
    (tmp_path / "a.jpg").write_bytes(data)
    value = {
        "path": "a.jpg",
        "bytes": data,
        "mapping": {"bytes": None, "path": "a.jpg"},
        "data url": "data:image/jpeg;base64," + base64.b64encode(data).decode(),
        "pil": Image.open(io.BytesIO(data)),
    }[form]
    assert image_size(value, root=tmp_path, where=WHERE) == (8, 16)


def test_the_size_of_a_file_is_read_without_its_pixels(tmp_path):
    data = encoded(Image.effect_noise((400, 300), 50))
    (tmp_path / "a.png").write_bytes(data[:200])
    assert image_size("a.png", root=tmp_path, where=WHERE) == (400, 300)
