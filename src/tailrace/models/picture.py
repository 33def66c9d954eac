"""A picture out of bytes that a stranger sent: told by its first bytes, bounded before it is decoded.

Whatever a file holds (turned by EXIF, CMYK, 16 bits, transparent, animated) becomes one upright RGB array
of a bounded size. Needs Pillow, imported where it is used. Keeps and logs no byte of a picture.
"""

import contextlib
import io
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tailrace.core.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

Pixels = npt.NDArray[np.uint8]

FORMATS = {"image/jpeg": "JPEG", "image/png": "PNG", "image/webp": "WEBP"}
"""The media types that are read, and what their files are called."""
ALSO = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg"}
"""Other names that clients use."""
SIDE_MIN = 32
"""Fewer pixels than this on a side show no title."""
SIDE_MAX = 1600
"""Pixels of the longer side that are looked at; a larger picture is made smaller."""
ASPECT_MAX = 12
"""A picture that is longer than so many times its width is no picture of a book."""
PAPER = (255, 255, 255)
"""What shows through where a picture is transparent."""

TURNS: dict[int, Callable[[Pixels], Pixels]] = {
    2: np.fliplr,
    3: partial(np.rot90, k=2),
    4: np.flipud,
    5: lambda pixels: pixels.transpose(1, 0, 2),
    6: partial(np.rot90, k=-1),
    7: lambda pixels: np.rot90(pixels, 2).transpose(1, 0, 2),
    8: np.rot90,
}
"""How a picture is set upright, by what its EXIF tag says of how it lies."""
ON_ITS_SIDE = frozenset({5, 6, 7, 8})
AVERAGED = frozenset({"L", "LA", "RGB", "RGBA", "CMYK", "YCbCr"})
"""Kinds of pixels that are made smaller as they are."""
UNREADABLE = (OSError, SyntaxError, ValueError, EOFError, IndexError, TypeError, struct.error)
"""What decoders raise over damaged files."""


class WrongPictureType(InputError):
    """The body is no JPEG, PNG or WebP picture."""

    code = "wrong-picture-type"


class BadPicture(InputError):
    """The picture cannot be read."""

    code = "bad-picture"


class PictureTooLarge(InputError):
    """The picture has too many pixels."""

    code = "picture-too-large"


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A picture as it is looked at."""

    pixels: Pixels
    """Upright by its own word, RGB, at most SIDE_MAX on a side."""
    format: str
    width: int
    """As sent, upright."""
    height: int


def sniffed(data: bytes) -> str | None:
    """The media type that the first bytes tell; None for anything that is not read here."""
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def check_type(data: bytes, declared: str) -> str:
    """The media type, declared and true.

    Raises:
        WrongPictureType: it is not one of FORMATS, or the bytes are something else.

    """
    known = ", ".join(FORMATS)
    declared = ALSO.get(declared, declared)
    if declared not in FORMATS:
        raise WrongPictureType(f"The content type must be {known}; it is {declared or 'none'}.")
    found = sniffed(data)
    if found != declared:
        told = f"a picture of type {found}" if found else "no picture that is read here"
        raise WrongPictureType(f"The content type says {declared}; the bytes are {told}.")
    return declared


def decoded(data: bytes, media_type: str, pixels_max: int) -> Picture:
    """The picture; nothing is decoded before its head has told that it is small enough.

    Raises:
        PictureTooLarge: it has more than `pixels_max` pixels.
        BadPicture: it is too small or too long, damaged, or cut off.

    """
    with _told_plainly():
        from PIL import Image  # noqa: PLC0415 - the extra `covers`

        # The bound below is ours and is an error; the library's own would be a warning, then an error.
        Image.MAX_IMAGE_PIXELS = None
        with Image.open(io.BytesIO(data), formats=[FORMATS[media_type]]) as image:
            _check_size(image.width, image.height, pixels_max)
            # A JPEG is decoded at a fraction of its size where that is enough: less to hold.
            wide, high = image.size
            image.draft("RGB", (2 * SIDE_MAX, 2 * SIDE_MAX))
            image.load()
            told = _orientation(image)
            # Smaller first, where its kind can be averaged: a large one is then never held twice.
            small = image if image.mode in AVERAGED else _plain(image)
            small.thumbnail((SIDE_MAX, SIDE_MAX))
            pixels = np.asarray(_plain(small), np.uint8)
    if told in TURNS:
        pixels = np.ascontiguousarray(TURNS[told](pixels))
    if told in ON_ITS_SIDE:
        wide, high = high, wide
    return Picture(pixels, media_type.removeprefix("image/"), wide, high)


def as_jpeg(picture: Picture, side_max: int) -> bytes:
    """The picture as a JPEG file with at most `side_max` pixels on a side, and nothing but its pixels."""
    from PIL import Image  # noqa: PLC0415 - the extra `covers`

    image = Image.fromarray(picture.pixels)
    image.thumbnail((side_max, side_max))
    file = io.BytesIO()
    image.save(file, "JPEG", quality=85)
    return file.getvalue()


def _check_size(width: int, height: int, pixels_max: int) -> None:
    size = f"The picture is {width} x {height} pixels"
    if width * height > pixels_max:
        raise PictureTooLarge(f"{size}; the limit is {pixels_max} in all.")
    if min(width, height) < SIDE_MIN:
        raise BadPicture(f"{size}; at least {SIDE_MIN} are needed on each side.")
    if max(width, height) > ASPECT_MAX * min(width, height):
        raise BadPicture(f"{size}: too long to be a cover.")


def _orientation(image: "Image") -> int:
    """How the tag says that the picture lies, 1 where it says nothing that can be used."""
    try:
        told = image.getexif().get(0x0112, 1)
    except (ValueError, TypeError, KeyError, SyntaxError, OSError, struct.error):
        return 1
    return told if isinstance(told, int) else 1


def _plain(image: "Image") -> "Image":
    """The picture as RGB on paper, whatever it was made of."""
    from PIL import Image  # noqa: PLC0415 - the extra `covers`

    if image.mode.startswith(("I", "F")):
        values = np.asarray(image, np.float64)
        most = 65535.0 if image.mode.startswith("I;16") else max(float(values.max()), 1.0)
        return Image.fromarray((values / most * 255).clip(0, 255).astype(np.uint8)).convert("RGB")
    if image.mode in {"RGBA", "LA", "PA", "La", "RGBa"} or "transparency" in image.info:
        paper = Image.new("RGBA", image.size, (*PAPER, 255))
        paper.alpha_composite(image.convert("RGBA"))
        return paper.convert("RGB")
    return image.convert("RGB")


@contextlib.contextmanager
def _told_plainly() -> Iterator[None]:
    """What a decoder raises over a damaged file, as one error that repeats none of its bytes."""
    try:
        yield
    except UNREADABLE as fault:
        raise BadPicture("The picture is damaged or cut off.") from fault
