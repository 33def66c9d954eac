"""Servers that the tests of this folder share."""

from collections.abc import Iterator

import pytest

from apis import Api, opened, real_offers, serving_api
from boxes import Served, serving
from tailrace.models.cross_encoder import OnnxCrossEncoder
from tailrace.models.embedder import OnnxEmbedder


@pytest.fixture(scope="session")
def shared_box() -> Iterator[Served]:
    """One box for every test that leaves it as it was."""
    with serving() as served:
        yield served


@pytest.fixture
def box(shared_box: Served) -> Iterator[Served]:
    """The shared box, quiet before and after."""
    shared_box.quiet()
    yield shared_box
    shared_box.quiet()


@pytest.fixture(scope="session")
def api(real_embedder: OnnxEmbedder, real_cross_encoder: OnnxCrossEncoder) -> Iterator[Api]:
    """A model server with the offline models, for every test that leaves it as it was."""
    opening = opened(real_embedder, real_cross_encoder)
    with serving_api(opening, models=real_offers()) as served:
        yield served
