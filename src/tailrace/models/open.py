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
    converted_second_embedder,
    shipped_if_any,
)
from tailrace.models.cross_encoder import OnnxCrossEncoder, SecondOpinion
from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.errors import ModelUnavailable
from tailrace.models.folder import ModelFolder, read_folder
from tailrace.models.fusion import Fusion, read_fusion
from tailrace.models.hub import hub_folder
from tailrace.models.onnx_session import OnnxSession
from tailrace.models.port import FloatArray, ModelInfo, Progress
from tailrace.models.probe import PROBE_TEXTS, TOLERANCE, invariance, warm_up
from tailrace.models.runtimes import IN_THREADS, Running
from tailrace.models.session import Session
from tailrace.models.source import DirSource, HubSource, PackageSource, Source, parse_source
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import PairTokens, TextTokens, load_tokenizer

log = logging.getLogger(__name__)

CROSS_ENCODER = "cross-encoder"
EMBEDDING = "embedding"
CLASSIFIER = "classifier"
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
    running: Running = IN_THREADS,
) -> OnnxCrossEncoder:
    """Open a cross-encoder; without `threads` it starts its own and stops them on close.

    `fusion` is the content of a fusion file; left out, the shipped one is used where there is one.
    Without `arena` memory goes back to the system after every run, at some cost in speed.
    """
    parsed = parse_source(source)
    folder = fetch(
        parsed, CROSS_ENCODER, progress=progress, cache_dir=cache_dir, int8=running.takes_int8
    )
    progress("opening the cross-encoder", 0.92)
    own = threads or InferenceThreads()
    info = model_info(parsed, folder, CROSS_ENCODER)
    tokens = PairTokens(load_tokenizer(folder.tokenizer), info.max_tokens)
    session: Session = (
        running.open(folder.onnx, own.count) if arena else OnnxSession(folder.onnx, arena=False)
    )
    if "logits" not in session.outputs:
        session.close()
        raise ModelUnavailable(f"{folder.onnx} has no output logits; it is no cross-encoder")
    if fusion is None and isinstance(parsed, PackageSource):
        fusion = shipped_if_any(FUSION_FILE)
    second = None
    if fusion is not None:
        embedder = _second_embedder(own, progress, cache_dir)
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
    running: Running = IN_THREADS,
) -> OnnxEmbedder:
    """Open an embedder; without `threads` it starts its own and stops them on close."""
    parsed = parse_source(source)
    folder = fetch(
        parsed, EMBEDDING, progress=progress, cache_dir=cache_dir, int8=running.takes_int8
    )
    progress("opening the embedder", 0.92)
    own = threads or InferenceThreads()
    model = _embedder(
        parsed,
        folder,
        own,
        chunk_tokens=chunk_tokens,
        owns_threads=threads is None,
        running=running,
    )
    progress("warming up", 0.95)
    probes = [model.tokens(text) for text in PROBE_TEXTS]
    model.found_invariant(invariant=invariance(model.vectors, probes) <= TOLERANCE)
    warm_up(model.vectors, probes[0], model.info.max_tokens, chunk_tokens)
    progress("ready", 1.0)
    return model


def _embedder(
    source: Source,
    folder: ModelFolder,
    threads: InferenceThreads,
    *,
    chunk_tokens: int = CHUNK_TOKENS,
    owns_threads: bool = False,
    running: Running = IN_THREADS,
) -> OnnxEmbedder:
    info = model_info(source, folder, EMBEDDING)
    prompts = folder.description.prompts
    info = replace(info, detail={**info.detail, "prompts": dict(prompts)})
    return OnnxEmbedder(
        info,
        running.open(folder.onnx, threads.count),
        TextTokens(load_tokenizer(folder.tokenizer), info.max_tokens),
        threads,
        prompts=prompts,
        owns_threads=owns_threads,
        chunk_tokens=chunk_tokens,
    )


def _second_embedder(
    threads: InferenceThreads, progress: Progress, cache_dir: Path | None
) -> OnnxEmbedder:
    """The small embedder that the review cross-encoder mixes in."""

    def within(what: str, share: float) -> None:
        progress(what, 0.92 + 0.02 * share)

    path, damage = converted_second_embedder(cache_dir, within)
    if damage:
        log.warning("the cached model %s was damaged (%s) and was rebuilt", path, damage)
    return _embedder(PackageSource(PACKAGE), read_folder(path), threads)


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
    source: Source,
    kind: str,
    *,
    progress: Progress = silent,
    cache_dir: Path | None = None,
    int8: bool = True,
) -> ModelFolder:
    """Make sure that the model's folder is there and whole, and look into it.

    What we convert ourselves is in row-wise int8, or in float32 for runtimes that cannot run that.
    """
    match source:
        case PackageSource(name=name):
            if kind == CLASSIFIER:
                raise ModelUnavailable(f"package {name} holds no classifier; use dir: or hf:")
            if name != PACKAGE:
                raise ModelUnavailable(
                    f"we know no way to make a model of package {name}; use package:{PACKAGE}"
                )
            convert = converted_cross_encoder if kind == CROSS_ENCODER else converted_embedder
            path, damage = convert(cache_dir, progress, int8=int8)
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


def model_info(source: Source, folder: ModelFolder, kind: str) -> ModelInfo:
    """What there is to say of a model in a folder; raises ModelUnavailable for another kind."""
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
