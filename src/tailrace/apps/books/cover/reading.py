"""A cover's words, and the book they mean: decode, find the lines, read them, look them up; turn, and again.

One picture on one thread. A picture that lies on its side or its head tells nothing the first time; its
lines are turned and read again, until a book fits or all ways are tried. Whoever leaves ends it.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

import numpy as np

from tailrace.apps.books.cover.match import NOTHING, Matched, ReadLine
from tailrace.apps.books.cover.settings import CoverSettings
from tailrace.core.clock import Clock
from tailrace.core.errors import ModelTimeout
from tailrace.core.work import Stamps
from tailrace.models.errors import Abandoned, ModelUnavailable
from tailrace.models.picture import Picture, Pixels, decoded
from tailrace.models.tesseract import ReadingChild, Tesseract
from tailrace.models.text_boxes import Line, TextBoxes, cut, framed, in_order, unstacked

MODULES = ("cv2", "pyclipper", "shapely", "rapidocr")
"""What finding lines needs, beside what every cover does."""
ALWAYS = ("PIL", "rapidfuzz")
INSTALL = "pip install 'tailrace[covers]' && apt-get install tesseract-ocr tesseract-ocr-kor"

Judge = Callable[[Sequence[ReadLine]], Matched]


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What came of one picture."""

    picture: Picture
    lines: tuple[ReadLine, ...] = ()
    turned: int = 0
    """By how many degrees, clockwise, the picture was turned to be read so."""
    matched: Matched = NOTHING
    in_time: bool = True
    trail: Stamps = field(default_factory=lambda: Stamps(0.0))
    """Where the time went."""


class Attempt:
    """One picture on its way; `give_up` may be called from any thread."""

    def __init__(self, data: bytes, media_type: str) -> None:
        self.data = data
        self.media_type = media_type
        self._gone = threading.Event()
        self._lock = threading.Lock()
        self._child: ReadingChild | None = None

    def give_up(self) -> None:
        """Nobody waits any more: the child that reads is killed, and nothing further is begun."""
        with self._lock:
            self._gone.set()
            if self._child is not None:
                self._child.end()

    def check(self) -> None:
        """Raise Abandoned where nobody waits any more."""
        if self._gone.is_set():
            raise Abandoned

    def child(self, child: ReadingChild) -> ReadingChild:
        """The child that reads for this attempt."""
        with self._lock:
            self._child = child
            if self._gone.is_set():
                child.end()
        return child


class Reader:
    """Reads covers here. Raises ModelUnavailable where what it needs is not installed."""

    def __init__(self, settings: CoverSettings, clock: Clock) -> None:
        missing = [name for name in MODULES if find_spec(name) is None]
        if missing:
            raise ModelUnavailable(f"{', '.join(missing)} is not installed")
        self._tesseract = Tesseract(settings.tesseract, settings.languages)
        self._seconds = settings.read_s
        self._clock = clock
        self._boxes: TextBoxes | None = None
        self._opening = threading.Lock()

    def read(self, attempt: Attempt, picture: Picture, trail: Stamps, judge: Judge) -> Reading:
        """All that is written on the picture, as far as the time goes.

        Raises:
            Abandoned: the attempt was given up.
            ModelError: tesseract failed.

        """
        ends = self._clock.now() + self._seconds
        lines = self._detector().find(picture.pixels)
        trail.close("detect", self._clock.now())
        best = Reading(picture, trail=trail)
        for degrees in turns(lines):
            attempt.check()
            pixels, there = turned(picture.pixels, lines, degrees)
            strips = [strip(pixels, line) for line in there]
            child = attempt.child(self._tesseract.reading())
            try:
                texts = child.read(strips, ends - self._clock.now())
            except ModelTimeout:
                return Reading(
                    picture, best.lines, best.turned, best.matched, in_time=False, trail=trail
                )
            finally:
                trail.close("recognise", self._clock.now())
            read = tuple(
                ReadLine(text, line.letter) for text, line in zip(texts, there, strict=True) if text
            )
            matched = judge(read)
            trail.close("match", self._clock.now())
            if matched.books or matched.best > best.matched.best or not best.lines:
                best = Reading(picture, read, degrees, matched, trail=trail)
            if matched.books:
                break
        return best

    def _detector(self) -> TextBoxes:
        """Opened with the first picture: who has no covers does not pay for it."""
        with self._opening:
            if self._boxes is None:
                self._boxes = TextBoxes()
        return self._boxes


def look(
    attempt: Attempt, reader: Reader | None, pixels_max: int, judge: Judge, clock: Clock
) -> Reading:
    """Decode, and read where there is a reader. Raises as `decoded` and `Reader.read`."""
    attempt.check()
    trail = Stamps(clock.now())
    picture = decoded(attempt.data, attempt.media_type, pixels_max)
    trail.close("decode", clock.now())
    if reader is None:
        return Reading(picture, trail=trail)
    return reader.read(attempt, picture, trail, judge)


def turns(lines: Sequence[Line]) -> tuple[int, ...]:
    """By how many degrees to turn, likeliest first; none where there is nothing to read.

    Lines on their side are boxes that stand; so are titles written from above to below.
    """
    if not lines:
        return ()
    tall = sum(line.tall for line in lines)
    if tall == 0:
        return (0, 180)
    if 2 * tall > len(lines):
        return (90, 270, 0, 180)
    return (0, 180, 90, 270)


def turned(pixels: Pixels, lines: Sequence[Line], degrees: int) -> tuple[Pixels, list[Line]]:
    """Picture and lines, turned clockwise by a multiple of 90 degrees."""
    made = list(lines)
    high, wide = pixels.shape[:2]
    for _ in range(degrees // 90):
        boxes = [np.stack([high - line.box[:, 1], line.box[:, 0]], axis=1) for line in made]
        # What was the lower left corner is the upper left one now.
        made = [
            Line(np.roll(box, 1, axis=0), tall=not line.tall)
            for box, line in zip(boxes, made, strict=True)
        ]
        high, wide = wide, high
    return np.ascontiguousarray(np.rot90(pixels, -(degrees // 90))), in_order(made)


def strip(pixels: Pixels, line: Line) -> Pixels:
    """A line as tesseract is shown it."""
    flat = cut(pixels, line)
    return framed(unstacked(flat) if line.tall else flat)
