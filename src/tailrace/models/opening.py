"""Opens models: a source in, a ready port out. The one place that puts the parts together."""

import logging
from pathlib import Path

from tailrace.models.cache import folder_fingerprint
from tailrace.models.convert import PACKAGE, converted_cross_encoder, converted_embedder
from tailrace.models.cross_encoder import OnnxCrossEncoder
from tailrace.models.errors import ModelUnavailable
from tailrace.models.folder import ModelFolder, read_folder
from tailrace.models.port import ModelInfo, Progress
from tailrace.models.session import Session
from tailrace.models.source import DirSource, PackageSource, Source, parse_source
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import PairTokens, load_tokenizer

log = logging.getLogger(__name__)

CROSS_ENCODER = "cross-encoder"
EMBEDDING = "embedding"


def silent(what: str, share: float) -> None:
    """A Progress that tells nobody."""
    del what, share


def open_cross_encoder(
    source: str,
    *,
    threads: InferenceThreads | None = None,
    progress: Progress = silent,
    cache_dir: Path | None = None,
) -> OnnxCrossEncoder:
    """Open a cross-encoder; without `threads` it starts its own and stops them on close."""
    parsed = parse_source(source)
    folder = fetch(parsed, CROSS_ENCODER, progress=progress, cache_dir=cache_dir)
    session = Session(folder.onnx)
    if "logits" not in session.outputs:
        raise ModelUnavailable(f"{folder.onnx} has no output logits; it is no cross-encoder")
    info = _info(parsed, folder, CROSS_ENCODER)
    tokens = PairTokens(load_tokenizer(folder.tokenizer), info.max_tokens)
    return OnnxCrossEncoder(
        info, session, tokens, threads or InferenceThreads(), owns_threads=threads is None
    )


def fetch(
    source: Source, kind: str, *, progress: Progress = silent, cache_dir: Path | None = None
) -> ModelFolder:
    """Make sure that the model's folder is there, and look into it."""
    match source:
        case PackageSource(name=name):
            if name != PACKAGE:
                raise ModelUnavailable(f"no model can be made of the package {name}; try {PACKAGE}")
            convert = converted_cross_encoder if kind == CROSS_ENCODER else converted_embedder
            path, damage = convert(cache_dir, progress)
            if damage:
                log.warning("the cached model %s was damaged (%s) and was rebuilt", path, damage)
            return read_folder(path)
        case DirSource(path=named, file=file):
            return read_folder(Path(named).expanduser(), file)
        case _:
            raise ModelUnavailable("not yet")


def _info(source: Source, folder: ModelFolder, kind: str) -> ModelInfo:
    files = folder.content_files
    return ModelInfo(
        name=folder.description.name,
        source=str(source),
        kind=kind,
        fingerprint=folder_fingerprint(folder.path, files),
        size_bytes=sum((folder.path / name).stat().st_size for name in files),
        quantisation=folder.description.quantisation,
        max_tokens=folder.description.max_tokens,
        batch_invariant=False,
    )
