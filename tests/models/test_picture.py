"""Pictures that strangers send: whatever a file holds becomes upright RGB of a bounded size, or a no."""

import io
import struct
import warnings
import zlib
from typing import Any

import numpy as np
import pytest

from covers_here import need_covers

need_covers()

from PIL import Image  # noqa: E402

from tailrace.models.picture import (  # noqa: E402
    SIDE_MAX,
    BadPicture,
    PictureTooLarge,
    WrongPictureType,
    as_jpeg,
    check_type,
    decoded,
)

PIXELS_MAX = 20_000_000


def picture(mode: str = "RGB", size: tuple[int, int] = (120, 160)) -> Any:
    """Dark above, light below."""
    image = Image.new("L", size, 230)
    image.paste(20, (0, 0, size[0], size[1] // 2))
    return image.convert(mode)


def filed(image: Any, kind: str, **more: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **more)
    return file.getvalue()


def is_dark_above(pixels: np.ndarray) -> bool:
    high = len(pixels)
    return bool(pixels[: high // 4].mean() < 60 and pixels[-high // 4 :].mean() > 190)


def sixteen_bits() -> bytes:
    values = np.asarray(picture("L"), np.uint16) * 257
    return filed(Image.fromarray(values), "PNG")


def see_through() -> bytes:
    image = Image.new("RGBA", (120, 160), (0, 0, 0, 0))
    image.paste((20, 20, 20, 255), (0, 0, 120, 80))
    return filed(image, "PNG")


def see_through_palette() -> bytes:
    image = Image.new("P", (120, 160), 1)
    image.putpalette([20, 20, 20, 0, 0, 0] + [0] * 762)
    image.paste(0, (0, 0, 120, 80))
    return filed(image, "PNG", transparency=1)


def moving() -> bytes:
    return filed(
        picture(), "WEBP", save_all=True, append_images=[Image.new("RGB", (120, 160), "red")]
    )


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (filed(picture(), "JPEG"), "image/jpeg"),
        (filed(picture("L"), "JPEG"), "image/jpeg"),
        (filed(picture("CMYK"), "JPEG"), "image/jpeg"),
        (filed(picture(), "JPEG", progressive=True), "image/jpeg"),
        (filed(picture(), "PNG"), "image/png"),
        (filed(picture("1"), "PNG"), "image/png"),
        (filed(picture("P"), "PNG"), "image/png"),
        (filed(picture("LA"), "PNG"), "image/png"),
        (filed(picture(), "WEBP"), "image/webp"),
        (sixteen_bits(), "image/png"),
        (see_through(), "image/png"),
        (see_through_palette(), "image/png"),
        (moving(), "image/webp"),
    ],
)
def test_whatever_a_file_is_made_of_it_is_seen_as_people_see_it(data: bytes, kind: str) -> None:
    assert check_type(data, kind) == kind
    seen = decoded(data, kind, PIXELS_MAX)
    assert seen.pixels.dtype == np.uint8
    assert seen.pixels.shape == (160, 120, 3)
    assert (seen.width, seen.height) == (120, 160)
    assert is_dark_above(seen.pixels)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_picture_is_turned_as_its_tag_says(orientation: int) -> None:
    """The file holds the picture the wrong way round, and how to undo that."""
    undone = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    wrong = picture().transpose(undone[orientation]) if orientation > 1 else picture()
    exif = Image.Exif()
    exif[0x0112] = orientation
    seen = decoded(filed(wrong, "JPEG", exif=exif), "image/jpeg", PIXELS_MAX)
    assert (seen.width, seen.height) == (120, 160)
    assert is_dark_above(seen.pixels)


def test_a_large_picture_is_looked_at_in_a_bounded_size() -> None:
    data = filed(picture("RGB", (3000, 4000)), "JPEG")
    seen = decoded(data, "image/jpeg", PIXELS_MAX)
    assert max(seen.pixels.shape) == SIDE_MAX
    assert (seen.width, seen.height) == (3000, 4000)
    sent = Image.open(io.BytesIO(as_jpeg(seen, 512)))
    assert max(sent.size) == 512
    assert not sent.getexif()


def bomb(wide: int, high: int) -> bytes:
    """A small PNG file that says it is huge; of its pixels there are as many as fit in a few bytes."""

    def chunk(name: bytes, body: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(name + body))
        return struct.pack(">I", len(body)) + name + body + crc

    head = struct.pack(">IIBBBBB", wide, high, 1, 0, 0, 0, 0)
    body = zlib.compress(b"\0" * 4_000_000, 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize("size", [(30_000, 30_000), (4_000_000_000 // 2, 2), (5_000, 4_001)])
def test_a_bomb_is_refused_by_its_head_and_never_decoded(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("it was decoded")

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", never)
    with warnings.catch_warnings(), pytest.raises(PictureTooLarge, match="limit is 20000000"):
        decoded(bomb(*size), "image/png", PIXELS_MAX)


@pytest.mark.parametrize("size", [(8, 8), (31, 400), (4000, 40)])
def test_what_shows_no_cover_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(BadPicture, match=f"{size[0]} x {size[1]}"):
        decoded(filed(picture("RGB", size), "PNG"), "image/png", PIXELS_MAX)


def damaged() -> list[tuple[bytes, str]]:
    jpeg, png, webp = (filed(picture(), kind) for kind in ("JPEG", "PNG", "WEBP"))
    kinds = [(jpeg, "image/jpeg"), (png, "image/png"), (webp, "image/webp")]
    cut = [(data[: len(data) // 2], kind) for data, kind in kinds]
    heads = [(data[:14], kind) for data, kind in kinds]
    junk = [(data[:16] + b"\xff\x00 no picture" * 40, kind) for data, kind in kinds]
    return [*cut, *heads, *junk, (bomb(100, 100_000), "image/png")]


@pytest.mark.parametrize(("data", "kind"), damaged())
def test_a_damaged_file_is_one_clear_error(data: bytes, kind: str) -> None:
    with pytest.raises(BadPicture):
        decoded(data, kind, PIXELS_MAX)


def test_jpeg_goes_by_its_other_name_too() -> None:
    assert check_type(filed(picture(), "JPEG"), "image/jpg") == "image/jpeg"


@pytest.mark.parametrize(
    ("data", "declared", "told"),
    [
        (filed(picture(), "JPEG"), "application/json", "it is application/json"),
        (filed(picture(), "JPEG"), "", "it is none"),
        (filed(picture(), "JPEG"), "image/png", "of type image/jpeg"),
        (filed(picture(), "GIF"), "image/gif", "it is image/gif"),
        (filed(picture(), "GIF"), "image/png", "no picture that is read here"),
        (b"<svg onload='x'/>", "image/png", "no picture that is read here"),
        (b"", "image/jpeg", "no picture that is read here"),
    ],
)
def test_a_type_must_be_one_of_three_and_true(data: bytes, declared: str, told: str) -> None:
    with pytest.raises(WrongPictureType, match=told):
        check_type(data, declared)
