"""A cover's words, and the book they mean: decode, find the lines, read them, look them up; turn, and again.

One picture on one thread. A picture that lies on its side or its head tells nothing the first time; its
lines are turned and read again, until a book fits or all ways are tried. Whoever leaves ends it.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Literal

import numpy as np

from tailrace.apps.books.cover.match import NOTHING, Matched, ReadLine
from tailrace.apps.books.cover.settings import CoverSettings
from tailrace.core.clock import Clock
from tailrace.core.errors import ModelError, ModelTimeout
from tailrace.core.work import Stamps
from tailrace.models.errors import Abandoned, ModelUnavailable
from tailrace.models.picture import Picture, Pixels, decoded
from tailrace.models.tesseract import ReadingChild, Tesseract
from tailrace.models.text_boxes import Line, TextBoxes, cut, framed, in_order, unstacked

log = logging.getLogger(__name__)

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
    trouble: Literal["", "ocr-timeout", "ocr-failed"] = ""
    """What kept it from being read to the end."""
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

        """
        ends = self._clock.now() + self._seconds
        found = {0: self._find(picture.pixels, trail)}
        best = Reading(picture, trail=trail)
        for degrees in turns(found[0]):
            attempt.check()
            side = degrees % 180
            if side not in found:  # lines on their side are found worse than lines that lie
                found[side] = self._find(np.rot90(picture.pixels, -1), trail)
            pixels = np.ascontiguousarray(np.rot90(picture.pixels, -(degrees // 90)))
            there = found[side] if degrees == side else upside_down(found[side], pixels)
            if not there:
                continue
            strips = [strip(pixels, line) for line in there]
            child = attempt.child(self._tesseract.reading())
            try:
                texts = child.read(strips, ends - self._clock.now())
            except ModelError as error:
                log.warning("a cover was not read: %s", error)
                late = isinstance(error, ModelTimeout)
                return replace(best, trouble="ocr-timeout" if late else "ocr-failed")
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

    def _find(self, pixels: Pixels, trail: Stamps) -> list[Line]:
        lines = self._detector().find(pixels)
        trail.close("detect", self._clock.now())
        return lines

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


def upside_down(lines: Sequence[Line], pixels: Pixels) -> list[Line]:
    """The lines where they are in a picture that was turned by half."""
    high, wide = pixels.shape[:2]
    whole = np.array([wide, high], np.float32)
    return in_order([Line(np.roll(whole - line.box, 2, axis=0), line.tall) for line in lines])


def strip(pixels: Pixels, line: Line) -> Pixels:
    """A line as tesseract is shown it."""
    flat = cut(pixels, line)
    return framed(unstacked(flat) if line.tall else flat)
