"""The short way in: it has every path of the dialects that stands as it is, and the router has all."""

from fastapi.routing import APIRoute

from tailrace.apps.api.app import dialects
from tailrace.core.clock import MonotonicClock
from tailrace.serve.catalogue import Catalogue
from tailrace.serve.dialect import Front, Limits
from tailrace.serve.keys import Keys


def test_every_path_without_parameters_is_a_short_way_in():
    front = Front(MonotonicClock(), Catalogue.of([]), Keys(), Limits(1, 1, 1, 1))
    for dialect in dialects(front):
        routes = [route for route in dialect.router.routes if isinstance(route, APIRoute)]
        routed = {(method, route.path) for route in routes for method in route.methods}
        assert set(dialect.entries) == {pair for pair in routed if "{" not in pair[1]}
        assert dialect.entries


def test_no_two_dialects_claim_the_same_path():
    front = Front(MonotonicClock(), Catalogue.of([]), Keys(), Limits(1, 1, 1, 1))
    claimed = [pair for dialect in dialects(front) for pair in dialect.entries]
    assert len(claimed) == len(set(claimed))
