"""Pictures that come as pixels and not as a file, arrays and PIL images, as the bytes of a PNG file."""

import io

import numpy as np
from PIL import Image, ImageOps

_MODES = ("1", "L", "LA", "I;16", "P", "RGB", "RGBA")


def png_of_array(array: np.ndarray) -> bytes:
    """rows x columns (x 1, 3 or 4 channels) of uint8, bool, or floats from 0 to 1.

    Other ranges are refused: to guess how they are scaled would spoil pictures in silence.  Raises ValueError.
    """
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if not array.size or not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (3, 4))):
        raise ValueError(
            f"expected an array of rows x columns (x 1, 3 or 4 channels), got the shape {array.shape}; "
            "put the channels last"
        )
    if array.dtype.kind == "f" and np.all((array >= 0) & (array <= 1)):
        array = np.rint(array * 255)
    elif array.dtype == bool:
        array = array * 255
    elif array.dtype != np.uint8:
        raise ValueError(
            f"expected an array of uint8 (0 to 255), bool, or floats from 0 to 1, got {array.dtype} from {array.min()} "
            f"to {array.max()}; convert it"
        )
    return png_of_image(Image.fromarray(np.ascontiguousarray(array, dtype=np.uint8)))


def png_of_image(image: Image.Image) -> bytes:
    """Upright, in its own mode or, where PNG has none such (CMYK, YCbCr), in RGB.  Raises ValueError for mode F."""
    if image.mode == "F":  # white is 1 to some and 255 to others
        raise ValueError("a picture of mode F has no fixed range; convert it to L or RGB")
    upright = ImageOps.exif_transpose(image)
    buffer = io.BytesIO()
    if upright.mode not in _MODES:
        upright = upright.convert("I;16" if upright.mode == "I" else "RGB")
    upright.save(buffer, "PNG")
    return buffer.getvalue()
