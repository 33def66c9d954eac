"""The cache: whole folders or none, damage told apart, one build for two processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.models.cache import Damaged, cache_root, prepared, verify


def build(folder: Path) -> None:
    (folder / "weights").write_bytes(b"0123456789")


def test_a_missing_folder_is_built_and_found_afterwards(tmp_path: Path) -> None:
    folder = tmp_path / "models" / "m"
    assert prepared(folder, "package:x", build) == (folder, None)
    manifest = verify(folder, deep=True)
    assert manifest is not None
    assert manifest["source"] == "package:x"

    def not_again(_folder: Path) -> None:
        raise AssertionError("built a second time")

    assert prepared(folder, "package:x", not_again) == (folder, None)


def test_a_build_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        build(folder)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        prepared(tmp_path / "m", "package:x", fail)
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


def cut(folder: Path) -> None:
    (folder / "weights").write_bytes(b"01234")


def flip(folder: Path) -> None:
    (folder / "weights").write_bytes(b"0123456780")


def lose(folder: Path) -> None:
    (folder / "weights").unlink()


def garble(folder: Path) -> None:
    (folder / "manifest.json").write_text("{")


def unsign(folder: Path) -> None:
    (folder / "manifest.json").unlink()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut, "5 bytes instead of 10"),
        (flip, "contents"),
        (lose, "weights is missing"),
        (garble, "cannot be read"),
        (unsign, "manifest.json is missing"),
    ],
)
def test_damage_is_named_and_repaired(damage: object, said: str, tmp_path: Path) -> None:
    folder, _ = prepared(tmp_path / "m", "package:x", build)
    assert callable(damage)
    damage(folder)
    _, found = prepared(folder, "package:x", build)
    assert found is not None
    assert said in found
    assert verify(folder, deep=True) is not None


def test_damage_that_keeps_size_and_time_is_found_by_looking_deep(tmp_path: Path) -> None:
    folder, _ = prepared(tmp_path / "m", "package:x", build)
    times = (folder / "weights").stat()
    flip(folder)
    os.utime(folder / "weights", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert verify(folder) is not None
    with pytest.raises(Damaged, match="contents"):
        verify(folder, deep=True)


TWO_PROCESSES = """
import sys, time
from pathlib import Path
from tailrace.models.cache import prepared

def build(folder):
    with open(sys.argv[2], "a") as log:
        log.write("built\\n")
    time.sleep(0.3)
    (folder / "weights").write_bytes(b"0123456789")

folder, damage = prepared(Path(sys.argv[1]), "package:x", build)
print((folder / "weights").read_bytes().decode(), damage)
"""


def test_two_processes_that_start_at_once_build_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    source = Path(__file__).parents[2] / "src"
    command = [sys.executable, "-c", TWO_PROCESSES, str(tmp_path / "m"), str(log)]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=60)[0].strip() for process in both]
    assert said == ["0123456789 None"] * 2
    assert log.read_text() == "built\n"


def test_the_cache_stands_where_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("TAILRACE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_root() == tmp_path / ".cache" / "tailrace"
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache_root() == Path("/x/tailrace")
    monkeypatch.setenv("TAILRACE_CACHE", "/t")
    assert cache_root() == Path("/t")
