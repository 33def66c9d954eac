"""Where a picture has lines of writing, and each line cut out and laid flat.

The detector that the rapidocr package ships, on a session of our own, so that nothing is ever fetched; its
recogniser is not used: it knows no Hangul. Needs the extra `covers`, imported where it is used.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tailrace.models.errors import ModelUnavailable
from tailrace.models.picture import Pixels

WEIGHTS = "models/PP-OCRv6_det_small.onnx"
SEEN_SIDE = 736
"""Pixels of the longer side as the detector sees the picture."""
LINES_MAX = 24
"""Lines of one picture that are read, the largest ones."""
UPRIGHT = 1.6
"""A box that is so many times taller than wide is a line from above to below."""
PACE_LEAST, PACE_USUAL, PACE_MOST = 0.75, 1.2, 1.8
"""From one letter of such a line to the next, in widths of its widest."""
PACE_WEIGHT = 0.3
"""How much an unusual pace counts against ink that is cut through."""
GAP = 5
"""White pixels on either side of a letter that was laid beside others."""
LINE_HEIGHT = 64
"""Pixels of a line's height as it is read."""
MARGIN = 12
"""White pixels around it."""

Box = npt.NDArray[np.float32]
"""Four corners, clockwise from the upper left."""


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One line of writing: its box in the picture, and whether it runs from above to below."""

    box: Box
    tall: bool

    @property
    def letter(self) -> float:
        """The size of its letters, in pixels."""
        return float(min(_sides(self.box)))

    @property
    def centre(self) -> tuple[float, float]:
        """Its middle: x, y."""
        x, y = self.box.mean(axis=0)
        return float(x), float(y)


class TextBoxes:
    """The detector; may be asked from any one thread at a time. Raises ModelUnavailable."""

    def __init__(self) -> None:
        try:
            import onnxruntime  # noqa: PLC0415
            from rapidocr.ch_ppocr_det.utils import (  # noqa: PLC0415 - the extra `covers`
                DBPostProcess,
                DetPreProcess,
            )
        except ImportError as fault:
            raise ModelUnavailable(f"the text detector is not installed: {fault}") from fault
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        weights = package_folder() / WEIGHTS
        self._session = onnxruntime.InferenceSession(
            str(weights), options, providers=["CPUExecutionProvider"]
        )
        self._name = self._session.get_inputs()[0].name
        self._prepare = DetPreProcess(SEEN_SIDE, "max", [0.5] * 3, [0.5] * 3)
        self._boxes = DBPostProcess(thresh=0.3, box_thresh=0.5, unclip_ratio=1.6, use_dilation=True)

    def find(self, pixels: Pixels) -> list[Line]:
        """The lines of a picture, at most LINES_MAX, as they are read: downwards, then to the right."""
        seen = self._prepare(pixels[:, :, ::-1])
        heat = self._session.run(None, {self._name: seen})[0]
        boxes, _ = self._boxes(heat, pixels.shape[:2])
        lines = []
        for box in boxes:
            across, down = _sides(box)
            lines.append(Line(np.asarray(box, np.float32), down > UPRIGHT * across))
        lines.sort(key=lambda line: -line.letter)
        return in_order(lines[:LINES_MAX])


def in_order(lines: list[Line]) -> list[Line]:
    """Lines downwards; those at about one height from left to right."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: line.centre[1]):
        row = rows[-1] if rows else None
        if row and line.centre[1] - row[0].centre[1] < 0.5 * min(line.letter, row[0].letter):
            row.append(line)
        else:
            rows.append([line])
    return [line for row in rows for line in sorted(row, key=lambda line: line.centre[0])]


def cut(pixels: Pixels, line: Line) -> Pixels:
    """The line laid flat: grey, dark on light, LINE_HEIGHT high, with a margin."""
    import cv2  # noqa: PLC0415 - the extra `covers`

    across, down = _sides(line.box)
    scale = LINE_HEIGHT / max(1.0, min(across, down))
    wide, high = max(1, round(across * scale)), max(1, round(down * scale))
    flat = np.array([[0, 0], [wide, 0], [wide, high], [0, high]], np.float32)
    how = cv2.getPerspectiveTransform(line.box, flat)
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    strip = cv2.warpPerspective(
        grey, how, (wide, high), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    _, black = cv2.threshold(strip, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
    edge = np.concatenate([black[0], black[-1], black[:, 0], black[:, -1]])
    made: Pixels = 255 - black if edge.mean() < 128 else black
    return made


def framed(strip: Pixels) -> Pixels:
    """A strip with white around it."""
    made: Pixels = np.pad(strip, MARGIN, constant_values=255)
    return made


def unstacked(strip: Pixels) -> Pixels:
    """A strip of letters one under the other as one of letters side by side."""
    dark: Pixels = np.asarray(strip < 128, np.uint8)
    rows, columns = np.flatnonzero(dark.any(axis=1)), np.flatnonzero(dark.any(axis=0))
    if not len(rows):
        return strip
    inked = strip[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    edges = _between(np.asarray(inked < 128, np.float32).mean(axis=1), inked.shape[1])
    high = max(end - begin for begin, end in pairwise(edges))
    laid = []
    for begin, end in pairwise(edges):
        spare = high - (end - begin)
        cell = ((spare // 2, spare - spare // 2), (GAP, GAP))
        laid.append(np.pad(inked[begin:end], cell, constant_values=255))
    return np.concatenate(laid, axis=1)


def _between(ink: Box, wide: int) -> list[int]:
    """Where the letters of a stack begin and end: at one pace, and where there is the least ink.

    `ink` is the share of each row that is dark. A syllable may have an empty row inside, so empty rows
    alone tell nothing.
    """
    tall = len(ink)
    best, edges = np.inf, [0, tall]
    for count in range(
        max(1, round(tall / (PACE_MOST * wide))), round(tall / (PACE_LEAST * wide)) + 1
    ):
        pace = tall / count
        reach = max(1, round(0.15 * pace))
        tried = [0]
        for number in range(1, count):
            near = max(tried[-1] + 1, round(number * pace) - reach)
            tried.append(near + int(ink[near : near + 2 * reach + 1].argmin()))
        crossed = sum(float(ink[edge]) for edge in tried[1:]) / count
        cost = crossed + PACE_WEIGHT * abs(np.log(pace / (PACE_USUAL * wide)))
        if cost < best:
            best, edges = cost, [*tried, tall]
    return edges


def package_folder() -> Path:
    """Where the detector's package is. Raises ModelUnavailable."""
    spec = find_spec("rapidocr")
    if spec is None or spec.origin is None:
        raise ModelUnavailable("the text detector's package is not installed")
    return Path(spec.origin).parent


def _sides(box: Box) -> tuple[float, float]:
    """Width and height of a box, by its upper and left edges' average with the others."""
    across = (np.linalg.norm(box[1] - box[0]) + np.linalg.norm(box[2] - box[3])) / 2
    down = (np.linalg.norm(box[3] - box[0]) + np.linalg.norm(box[2] - box[1])) / 2
    return float(across), float(down)
