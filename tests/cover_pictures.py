"""Covers as a printer might make them, of any title and author: drawn, then spoilt as photographs are.

Used by the tests and by the bench. Needs Pillow and the Nanum fonts.
"""

import io
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

FONTS = (
    "NanumMyeongjoBold.ttf",
    "NanumGothicBold.ttf",
    "NanumSquareRoundB.ttf",
    "NanumBarunGothicBold.ttf",
)
SIZE = (600, 880)
PAPERS = ("#f4efe4", "#ffffff", "#20324a", "#7a1f2b", "#e8c547", "#3d6b58")
Font = ImageFont.FreeTypeFont


@dataclass(frozen=True)
class Words:
    """What stands on a cover."""

    title: str
    author: str = ""
    publisher: str = ""


def font(name: str, size: int) -> Font:
    return ImageFont.truetype(name, size)


def ink_on(paper: str) -> str:
    """Black on light paper, white on dark."""
    red, green, blue = (int(paper[i : i + 2], 16) for i in (1, 3, 5))
    return "#141414" if 0.3 * red + 0.59 * green + 0.11 * blue > 128 else "#f7f7f2"


def folded(text: str, name: str, size: int, width: int) -> list[str]:
    """A title in lines that fit, broken at spaces where there are any."""
    lines, line = [], ""
    for word in text.split():
        tried = f"{line} {word}".strip()
        if line and font(name, size).getlength(tried) > width:
            lines.append(line)
            tried = word
        line = tried
    return [*lines, line]


def fitting(text: str, name: str, width: int, largest: int = 92) -> tuple[Font, list[str]]:
    """The largest letters in which every word of the title fits."""
    for size in range(largest, 20, -4):
        lines = folded(text, name, size, width)
        if all(font(name, size).getlength(line) <= width for line in lines) and len(lines) <= 4:
            return font(name, size), lines
    return font(name, 24), folded(text, name, 24, width)


def _lines(draw: Any, words: Words, name: str, ink: str, top: int) -> int:
    letters, lines = fitting(words.title, name, SIZE[0] - 100)
    for line in lines:
        draw.text((50, top), line, font=letters, fill=ink)
        top += int(letters.size * 1.25)
    return top


def plain(words: Words, dice: random.Random) -> Image.Image:
    """Title above, author below it, publisher at the foot."""
    paper, name = dice.choice(PAPERS), dice.choice(FONTS)
    image = Image.new("RGB", SIZE, paper)
    draw, ink = ImageDraw.Draw(image), ink_on(paper)
    below = _lines(draw, words, name, ink, dice.randrange(80, 200))
    draw.text((52, below + 24), words.author, font=font("NanumGothic.ttf", 36), fill=ink)
    draw.text((52, SIZE[1] - 70), words.publisher, font=font("NanumGothic.ttf", 28), fill=ink)
    return image


def band(words: Words, dice: random.Random) -> Image.Image:
    """A picture all over, the words on a coloured band."""
    name, paper = dice.choice(FONTS), dice.choice(PAPERS)
    image = busy(dice)
    draw, ink = ImageDraw.Draw(image), ink_on(paper)
    _, lines = fitting(words.title, name, SIZE[0] - 100)
    top = dice.randrange(260, 420)
    draw.rectangle((0, top - 30, SIZE[0], top + 115 * len(lines) + 90), fill=paper)
    below = _lines(draw, words, name, ink, top)
    draw.text((52, below + 14), f"{words.author} 지음", font=font("NanumGothic.ttf", 34), fill=ink)
    return image


def stacked(words: Words, dice: random.Random) -> Image.Image:
    """The title from above to below, one syllable under the other, as on a spine."""
    paper, name = dice.choice(PAPERS), dice.choice(FONTS)
    image = Image.new("RGB", SIZE, paper)
    draw, ink = ImageDraw.Draw(image), ink_on(paper)
    signs = [sign for sign in words.title if not sign.isspace()]
    size = min(84, int((SIZE[1] - 240) / (1.15 * max(1, len(signs)))))
    for place, sign in enumerate(signs):
        draw.text((420, 60 + int(place * size * 1.15)), sign, font=font(name, size), fill=ink)
    draw.text((60, SIZE[1] - 130), words.author, font=font("NanumGothic.ttf", 36), fill=ink)
    return image


def over_picture(words: Words, dice: random.Random) -> Image.Image:
    """The words straight on a busy picture."""
    image = busy(dice)
    draw, name = ImageDraw.Draw(image), dice.choice(FONTS)
    below = _lines(draw, words, name, "#101010", 140)
    draw.text((52, below + 20), words.author, font=font("NanumGothicBold.ttf", 38), fill="#101010")
    return image


def busy(dice: random.Random) -> Image.Image:
    """Paper full of pale ellipses."""
    image = Image.new("RGB", SIZE, "#e9e4da")
    draw = ImageDraw.Draw(image)
    for _ in range(60):
        left, top = dice.randrange(-80, SIZE[0]), dice.randrange(-80, SIZE[1])
        colour = tuple(dice.randrange(120, 250) for _ in range(3))
        box = (left, top, left + dice.randrange(30, 220), top + dice.randrange(30, 220))
        draw.ellipse(box, fill=colour)
    return image


LAYOUTS: dict[str, Callable[[Words, random.Random], Image.Image]] = {
    "plain": plain,
    "band": band,
    "stacked": stacked,
    "over_picture": over_picture,
}


def noisy(image: Image.Image, dice: random.Random) -> Image.Image:
    """Grain, a little blur, uneven light."""
    drawn = np.random.default_rng(dice.randrange(1 << 30))
    pixels = np.asarray(image.filter(ImageFilter.GaussianBlur(0.8)), np.float32)
    light = np.linspace(0.75, 1.1, pixels.shape[1], dtype=np.float32)[None, :, None]
    grain = drawn.normal(0, 12, pixels.shape).astype(np.float32)
    return Image.fromarray((pixels * light + grain).clip(0, 255).astype(np.uint8))


def askew(image: Image.Image, dice: random.Random) -> Image.Image:
    """Photographed from the side: the cover lies on a table, its edges not parallel."""
    wide, high = image.size
    table = Image.new("RGB", (wide + 160, high + 160), "#6b5b4b")
    reach = [dice.randrange(10, 60) for _ in range(8)]
    corners = [
        (80 + reach[0], 80 + reach[1]),
        (80 + wide - reach[2], 80 + reach[3]),
        (80 + wide - reach[4], 80 + high - reach[5]),
        (80 + reach[6], 80 + high - reach[7]),
    ]
    into = [(0, 0), (wide, 0), (wide, high), (0, high)]
    rows, known = [], []
    for (x, y), (u, v) in zip(corners, into, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        known += [u, v]
    factors = np.linalg.solve(np.array(rows, float), np.array(known, float))
    how = Image.Transform.PERSPECTIVE, factors.tolist(), Image.Resampling.BICUBIC
    laid = image.transform(table.size, *how)
    mask = Image.new("L", image.size, 255).transform(table.size, *how)
    table.paste(laid, (0, 0), mask)
    return table


def turned(degrees: int) -> Callable[[Image.Image, random.Random], Image.Image]:
    """The picture lies on its side, or on its head, and no tag says so."""
    return lambda image, dice: image.rotate(degrees, expand=True)


def as_it_is(image: Image.Image, dice: random.Random) -> Image.Image:
    return image


SPOILS: dict[str, Callable[[Image.Image, random.Random], Image.Image]] = {
    "clean": as_it_is,
    "noisy": noisy,
    "askew": askew,
    "turned 90": turned(90),
    "turned 180": turned(180),
    "turned 270": turned(270),
}


def cover(words: Words, layout: str = "plain", spoil: str = "clean", seed: int = 1) -> Image.Image:
    """One cover."""
    dice = random.Random(seed)
    return SPOILS[spoil](LAYOUTS[layout](words, dice), dice)


def filed(image: Image.Image, kind: str = "JPEG", **more: Any) -> bytes:
    """The picture as a file."""
    file = io.BytesIO()
    image.save(file, kind, **more)
    return file.getvalue()
