"""Servers that the tests of this folder share."""

from collections.abc import Iterator

import pytest

from boxes import Served, serving


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
