"""Tesseract as a child process: strips of writing in by a pipe, their texts out, nothing on the disk.

One child reads all the strips of a picture, so its model is loaded once. Whoever no longer wants the texts
ends the child. Knows nothing of covers.
"""

import io
import os
import shutil
import subprocess
import threading
from collections.abc import Sequence

from tailrace.core.errors import ModelError, ModelTimeout
from tailrace.models.errors import Abandoned, ModelUnavailable
from tailrace.models.picture import Pixels

NICE = 10
"""As polite as an inference thread."""
SAID_CHARS_MAX = 200
"""Of its complaints, in an error."""
ONE_LINE = "7"
"""Its mode for a picture that is one line of text."""


class Tesseract:
    """The program and its language data. Raises ModelUnavailable where either is not there."""

    def __init__(self, program: str, languages: str) -> None:
        found = shutil.which(program)
        if found is None:
            raise ModelUnavailable(f"the program {program} is not installed")
        self._program = found
        self.languages = languages
        missing = sorted(set(languages.split("+")) - set(self._known()))
        if missing:
            raise ModelUnavailable(f"{program} has no data for: {', '.join(missing)}")

    def _known(self) -> list[str]:
        try:
            told = subprocess.run(
                [self._program, "--list-langs"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=10.0,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as fault:
            raise ModelUnavailable(f"{self._program} does not run: {fault}") from fault
        return told.stdout.decode("utf-8", "replace").splitlines()[1:]

    def reading(self) -> "ReadingChild":
        """A child to be, for one picture."""
        line = [self._program, "stdin", "stdout", "-l", self.languages, "--psm", ONE_LINE]
        return ReadingChild(line)


class ReadingChild:
    """At most one child at a time; `end` may be called from any thread at any moment, and lasts."""

    def __init__(self, line: Sequence[str]) -> None:
        self._line = list(line)
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._ended = False

    def read(self, strips: Sequence[Pixels], seconds: float) -> list[str]:
        """The text of each strip, in order; blocks until the child is through.

        Raises:
            ModelTimeout: it was not through within `seconds`; it is gone.
            Abandoned: `end` was called.
            ModelError: it failed.

        """
        if seconds <= 0:
            raise ModelTimeout("No time was left to read in.")
        pages = _tiff(strips)
        with self._lock:
            if self._ended:
                raise Abandoned
            child = self._child = subprocess.Popen(
                self._line,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "OMP_THREAD_LIMIT": "1"},
            )
        try:
            _polite(child.pid)
            told, complaints = child.communicate(pages, seconds)
        except subprocess.TimeoutExpired:
            raise ModelTimeout(f"Reading took longer than {seconds:.1f} s.") from None
        finally:
            self._gone(child)
        if self._ended:
            raise Abandoned
        if child.returncode:
            said = complaints.decode("utf-8", "replace").strip()[-SAID_CHARS_MAX:]
            raise ModelError(f"tesseract failed ({child.returncode}): {said}")
        texts = told.decode("utf-8", "replace").split("\f")[: len(strips)]
        texts += [""] * (len(strips) - len(texts))
        return [" ".join(text.split()) for text in texts]

    def end(self) -> None:
        """No more reading; a child that reads is killed."""
        with self._lock:
            self._ended = True
            if self._child is not None:
                self._child.kill()

    def _gone(self, child: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._child = None
        child.kill()
        child.communicate()


def _polite(pid: int) -> None:
    try:
        os.setpriority(os.PRIO_PROCESS, pid, NICE)
    except OSError:  # it is through already, or this is a sandbox that refuses
        return


def _tiff(strips: Sequence[Pixels]) -> bytes:
    """The strips as the pages of one file."""
    from PIL import Image  # noqa: PLC0415 - the extra `covers`

    first, *more = [Image.fromarray(strip) for strip in strips]
    file = io.BytesIO()
    first.save(file, "TIFF", save_all=True, append_images=more, dpi=(150, 150))
    return file.getvalue()
