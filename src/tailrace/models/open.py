"""Opens models: a source in, a ready port out. The one place that puts the parts together."""

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from safetensors.numpy import load as load_safetensors

from tailrace.models.cache import Damaged, folder_fingerprint, verify
from tailrace.models.chunks import CHUNK_TOKENS
from tailrace.models.convert import (
    PACKAGE,
    converted_cross_encoder,
    converted_embedder,
    shipped_if_any,
)
from tailrace.models.cross_encoder import OnnxCrossEncoder, SecondOpinion
from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.errors import ModelUnavailable
from tailrace.models.folder import ModelFolder, read_folder
from tailrace.models.fusion import Fusion, read_fusion
from tailrace.models.hub import hub_folder
from tailrace.models.port import FloatArray, ModelInfo, Progress
from tailrace.models.probe import PROBE_TEXTS, TOLERANCE, invariance, warm_up
from tailrace.models.session import Session
from tailrace.models.source import DirSource, HubSource, PackageSource, Source, parse_source
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import PairTokens, TextTokens, load_tokenizer

log = logging.getLogger(__name__)

CROSS_ENCODER = "cross-encoder"
EMBEDDING = "embedding"
FUSION_FILE = "fusion.safetensors"
_PROBE_LABEL = "주차"


def silent(what: str, share: float) -> None:
    """Take a progress report and tell nobody."""
    del what, share


def open_cross_encoder(
    source: str,
    *,
    threads: InferenceThreads | None = None,
    progress: Progress = silent,
    cache_dir: Path | None = None,
    chunk_tokens: int = CHUNK_TOKENS,
    arena: bool = True,
    fusion: bytes | None = None,
) -> OnnxCrossEncoder:
    """Open a cross-encoder; without `threads` it starts its own and stops them on close.

    `fusion` is the content of a fusion file; left out, the shipped one is used where there is one.
    Without `arena` memory goes back to the system after every run, at some cost in speed.
    """
    parsed = parse_source(source)
    folder = fetch(parsed, CROSS_ENCODER, progress=progress, cache_dir=cache_dir)
    progress("opening the cross-encoder", 0.92)
    session = Session(folder.onnx, arena=arena)
    if "logits" not in session.outputs:
        raise ModelUnavailable(f"{folder.onnx} has no output logits; it is no cross-encoder")
    info = _info(parsed, folder, CROSS_ENCODER)
    tokens = PairTokens(load_tokenizer(folder.tokenizer), info.max_tokens)
    own = threads or InferenceThreads()
    if fusion is None and isinstance(parsed, PackageSource):
        fusion = shipped_if_any(FUSION_FILE)
    second = None
    if fusion is not None:
        embedder = open_embedder(
            f"package:{PACKAGE}",
            threads=own,
            progress=lambda what, share: progress(what, 0.92 + 0.02 * share),
            cache_dir=cache_dir,
        )
        second = SecondOpinion(_fusion(fusion, embedder), embedder)
        mixed = hashlib.sha256(fusion + embedder.info.fingerprint.encode()).hexdigest()[:16]
        info = replace(
            info,
            fingerprint=f"{info.fingerprint}-{mixed}",
            size_bytes=info.size_bytes + embedder.info.size_bytes,
            detail={**info.detail, "fusion": True},
        )
    model = OnnxCrossEncoder(
        info,
        session,
        tokens,
        own,
        owns_threads=threads is None,
        chunk_tokens=chunk_tokens,
        second=second,
    )
    progress("warming up", 0.95)
    probes = [model.pair(text, _PROBE_LABEL) for text in PROBE_TEXTS]
    change = invariance(model.logits, probes)
    model.found_invariant(invariant=change <= TOLERANCE)
    warm_up(model.logits, probes[0], info.max_tokens, chunk_tokens)
    progress("ready", 1.0)
    return model


def open_embedder(
    source: str,
    *,
    threads: InferenceThreads | None = None,
    progress: Progress = silent,
    cache_dir: Path | None = None,
    chunk_tokens: int = CHUNK_TOKENS,
) -> OnnxEmbedder:
    """Open an embedder; without `threads` it starts its own and stops them on close."""
    parsed = parse_source(source)
    folder = fetch(parsed, EMBEDDING, progress=progress, cache_dir=cache_dir)
    progress("opening the embedder", 0.92)
    info = _info(parsed, folder, EMBEDDING)
    prompts = folder.description.prompts
    info = replace(info, detail={**info.detail, "prompts": dict(prompts)})
    tokens = TextTokens(load_tokenizer(folder.tokenizer), info.max_tokens)
    session = Session(folder.onnx)
    model = OnnxEmbedder(
        info,
        session,
        tokens,
        threads or InferenceThreads(),
        prompts=prompts,
        owns_threads=threads is None,
        chunk_tokens=chunk_tokens,
    )
    progress("warming up", 0.95)
    probes = [model.tokens(text) for text in PROBE_TEXTS]
    model.found_invariant(invariant=invariance(model.vectors, probes) <= TOLERANCE)
    warm_up(model.vectors, probes[0], info.max_tokens, chunk_tokens)
    progress("ready", 1.0)
    return model


def open_naive(
    source: str, cache_dir: Path | str | None = None
) -> Callable[[str, Sequence[str], Callable[[str], None]], FloatArray]:
    """Open a cross-encoder for the naive door: text, labels and a mark in, probabilities out.

    Every call is one padded batch on the calling thread, any number of them at once. Memory is given
    back after every run, so that what the process holds is what the crowd makes it hold.
    """
    folder = Path(cache_dir) if cache_dir is not None else None
    threads = InferenceThreads(1)
    model = open_cross_encoder(source, threads=threads, cache_dir=folder, arena=False)

    def score(text: str, labels: Sequence[str], mark: Callable[[str], None]) -> FloatArray:
        answer = model.padded_score([text], labels, _Marks(mark))[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return score


def fetch(
    source: Source, kind: str, *, progress: Progress = silent, cache_dir: Path | None = None
) -> ModelFolder:
    """Make sure that the model's folder is there and whole, and look into it."""
    match source:
        case PackageSource(name=name):
            if name != PACKAGE:
                raise ModelUnavailable(
                    f"we know no way to make a model of package {name}; use package:{PACKAGE}"
                )
            convert = converted_cross_encoder if kind == CROSS_ENCODER else converted_embedder
            path, damage = convert(cache_dir, progress)
            if damage:
                log.warning("the cached model %s was damaged (%s) and was rebuilt", path, damage)
            return read_folder(path)
        case DirSource(path=named):
            folder = read_folder(Path(named).expanduser())
        case HubSource():
            folder = hub_folder(source, progress)
    try:
        verify(folder.path)
    except Damaged as damage:
        raise ModelUnavailable(f"{folder.path} is damaged: {damage}; fetch it again") from None
    return folder


class _Marks:
    """A run that only marks; in the naive door nobody is ever given up."""

    def __init__(self, mark: Callable[[str], None]) -> None:
        self.mark = mark

    def wanted(self, index: int) -> bool:
        del index
        return True


def _fusion(content: bytes, embedder: OnnxEmbedder) -> Fusion:
    try:
        arrays = load_safetensors(content)
    except Exception as error:  # noqa: BLE001 - the library raises its own kinds of Exception
        raise ModelUnavailable(f"the fusion file cannot be read ({error})") from None

    def embed_label(label: str) -> FloatArray:
        return embedder.vector(label, prompt="passage")

    return Fusion(read_fusion(arrays), embed_label)


def _info(source: Source, folder: ModelFolder, kind: str) -> ModelInfo:
    found = folder.description
    if found.kind not in {None, kind}:
        raise ModelUnavailable(f"{folder.path} holds a model of kind {found.kind}, not {kind}")
    files = folder.content_files
    return ModelInfo(
        name=found.name,
        source=str(source),
        kind=kind,
        fingerprint=folder_fingerprint(folder.path, files),
        size_bytes=sum((folder.path / name).stat().st_size for name in files),
        quantisation=found.quantisation,
        max_tokens=found.max_tokens,
        batch_invariant=False,
    )
