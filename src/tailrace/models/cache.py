"""The cache of prepared models: folders written whole, with a manifest that tells damage.

Knows files and locks and nothing of what the files mean. POSIX only (flock, rename).
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
_CHUNK = 1 << 20


class Damaged(Exception):
    """A prepared folder is not what its manifest says; the message says how."""


@dataclass(frozen=True, slots=True)
class CachedModel:
    """One prepared folder in the cache."""

    name: str
    path: Path
    source: str
    fingerprint: str
    size_bytes: int
    damage: str | None
    """What is wrong with it, where something is."""


def cache_root() -> Path:
    """$TAILRACE_CACHE, else $XDG_CACHE_HOME/tailrace, else ~/.cache/tailrace."""
    if named := os.environ.get("TAILRACE_CACHE"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tailrace"


def models_folder(cache_dir: Path | None) -> Path:
    """Where prepared models stand."""
    return (cache_dir or cache_root()) / "models"


def prepared(folder: Path, source: str, build: Callable[[Path], None]) -> tuple[Path, str | None]:
    """The folder, built if it is missing or damaged; the second value says what was damaged.

    Two processes that start at once build once: the second waits for the first. A build that fails
    leaves nothing behind.
    """
    if folder.is_dir() and _damage(folder) is None:
        return folder, None
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _lock(folder.parent / f".{folder.name}.lock"):
        damage = _damage(folder) if folder.is_dir() else None
        if folder.is_dir() and damage is None:
            return folder, None
        scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            build(scratch)
            write_manifest(scratch, source)
            if folder.exists():
                shutil.rmtree(folder)
            scratch.chmod(0o755)
            scratch.rename(folder)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
    return folder, damage


def write_manifest(folder: Path, source: str) -> None:
    """Write down what every file of the folder is."""
    files = {
        path.name: {
            "sha256": file_hash(path),
            "size": path.stat().st_size,
            "mtime_ns": path.stat().st_mtime_ns,
        }
        for path in sorted(folder.iterdir())
        if path.name != MANIFEST
    }
    text = json.dumps({"source": source, "files": files}, indent=1)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def verify(folder: Path, *, deep: bool = False) -> dict[str, Any] | None:
    """The folder's manifest if all files are as it says, None where there is no manifest.

    Sizes are always compared; contents when a file was touched since, or `deep`. Raises Damaged.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        files = {name: dict(entry) for name, entry in manifest["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise Damaged(f"{MANIFEST} cannot be read ({error})") from None
    for name, entry in files.items():
        try:
            found = (folder / name).stat()
        except OSError:
            raise Damaged(f"{name} is missing") from None
        if found.st_size != entry.get("size"):
            raise Damaged(f"{name} has {found.st_size} bytes instead of {entry.get('size')}")
        touched = found.st_mtime_ns != entry.get("mtime_ns")
        if (deep or touched) and file_hash(folder / name) != entry.get("sha256"):
            raise Damaged(f"{name} does not have the contents it was written with")
    return manifest


def file_hash(path: Path) -> str:
    """sha256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_CHUNK):
            digest.update(piece)
    return digest.hexdigest()


def folder_fingerprint(folder: Path, names: list[str]) -> str:
    """One hash over the contents of these files; the manifest's hashes are taken where there is one."""
    manifest = verify(folder) or {"files": {}}
    digest = hashlib.sha256()
    for name in sorted(names):
        known = manifest["files"].get(name)
        digest.update(
            f"{name}\0{known['sha256'] if known else file_hash(folder / name)}\0".encode()
        )
    return digest.hexdigest()[:16]


def _damage(folder: Path) -> str | None:
    try:
        return None if verify(folder) else f"{MANIFEST} is missing"
    except Damaged as damaged:
        return str(damaged)


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
