"""Distance: what light needs, and what is detour."""

import pytest

from tailrace.latency.physics import (
    UnknownPlace,
    distance,
    fibre_round_trip_ms,
    great_circle_km,
    place,
)
from tailrace.latency.regions import AWS, AZURE, CITIES, GOOGLE


def test_great_circles_against_known_distances() -> None:
    """Published great-circle distances between city centres."""
    seoul, london, sydney = place("seoul"), place("london"), place("sydney")
    assert great_circle_km(seoul, place("tokyo")) == pytest.approx(1157, rel=0.01)
    assert great_circle_km(london, place("new-york")) == pytest.approx(5570, rel=0.01)
    assert great_circle_km(sydney, london) == pytest.approx(16994, rel=0.01)
    assert great_circle_km(seoul, seoul) == 0


def test_half_the_globe_is_the_farthest() -> None:
    assert great_circle_km(place("0,0"), place("0,180")) == pytest.approx(20015, rel=0.001)
    assert great_circle_km(place("90,0"), place("-90,77")) == pytest.approx(20015, rel=0.001)


def test_light_in_fibre_takes_a_millisecond_for_a_hundred_kilometres_and_back() -> None:
    assert fibre_round_trip_ms(100) == pytest.approx(0.98, abs=0.01)


def test_the_essays_275_ms_are_half_physics() -> None:
    """Seoul to Virginia."""
    apart = distance(place("ap-northeast-2"), place("us-east-1"), 275.0)
    assert 100 < apart.physics_ms < 120
    assert apart.physics_ms + apart.detour_ms == pytest.approx(275.0)
    assert "detour" in apart.sentence(275.0)


def test_faster_than_light_means_the_other_end_is_elsewhere() -> None:
    apart = distance(place("seoul"), place("us-east-1"), 3.0)
    assert apart.impossible
    assert "nearer" in apart.sentence(3.0)


@pytest.mark.parametrize("text", ["Korea Central", "koreacentral", "asia-northeast3", "Seoul"])
def test_one_city_under_many_names(text: str) -> None:
    assert (place(text).latitude, place(text).longitude) == CITIES["seoul"]


@pytest.mark.parametrize(
    "text", ["ap-northeast-9", "atlantis", "1,2,3", "95,0", "a,b", "", "nan,0"]
)
def test_nowhere_is_an_error_that_helps(text: str) -> None:
    with pytest.raises(UnknownPlace, match=r"no cloud region|no pair|nowhere"):
        place(text)


def test_a_near_miss_is_named() -> None:
    with pytest.raises(UnknownPlace, match="us-east-1"):
        place("us-east1-")


def test_every_region_stands_in_a_known_city() -> None:
    for regions in (AWS, GOOGLE, AZURE):
        assert set(regions.values()) <= set(CITIES)
    assert all(abs(a) <= 90 and abs(b) <= 180 for a, b in CITIES.values())
