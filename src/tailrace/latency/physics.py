"""How much of a round trip is physics: the great circle at the speed of light in fibre. The rest is detour.

Nothing can bring the first down but moving; the second is cable routes, peering and equipment.
"""

import difflib
from dataclasses import dataclass
from math import asin, cos, radians, sin, sqrt

from tailrace.latency.regions import AWS, AZURE, CITIES, GOOGLE

EARTH_KM = 6371.0088
"""Mean radius (IUGG)."""
LIGHT_KM_S = 299_792.458
FIBRE_INDEX = 1.468
"""Group index of refraction of standard single-mode fibre at 1550 nm (ITU-T G.652 cables)."""


class UnknownPlace(ValueError):
    """Neither coordinates nor a known region or city: what comes near."""


@dataclass(frozen=True, slots=True)
class Place:
    """A point on the globe, in degrees."""

    name: str
    latitude: float
    longitude: float


def place(text: str) -> Place:
    """Find "37.57,126.98", a region of AWS, Google Cloud or Azure, or a city; raises UnknownPlace."""
    if "," in text:
        return _coordinates(text)
    name = text.strip().lower().replace(" ", "-")
    regions = {**AWS, **GOOGLE, **AZURE}
    city = regions.get(name) or regions.get(name.replace("-", "")) or name
    if city not in CITIES:
        near = difflib.get_close_matches(name, [*regions, *CITIES], n=3)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise UnknownPlace(
            f"{text!r} is no cloud region, city or pair of coordinates like 37.57,126.98{hint}"
        )
    return Place(text.strip(), *CITIES[city])


def _coordinates(text: str) -> Place:
    try:
        latitude, longitude = (float(number) for number in text.split(","))
    except ValueError:
        raise UnknownPlace(f"{text!r} is no pair of coordinates like 37.57,126.98") from None
    if not (abs(latitude) <= 90 and abs(longitude) <= 180):
        raise UnknownPlace(
            f"{text!r} is nowhere: latitude is within 90, longitude within 180 degrees"
        )
    return Place(text.strip(), latitude, longitude)


def great_circle_km(a: Place, b: Place) -> float:
    """The shortest way over the surface (haversine formula; the globe taken as a sphere, 0.6 % off)."""
    phi_a, phi_b = radians(a.latitude), radians(b.latitude)
    half_phi = (phi_b - phi_a) / 2
    half_lambda = radians(b.longitude - a.longitude) / 2
    h = sin(half_phi) ** 2 + cos(phi_a) * cos(phi_b) * sin(half_lambda) ** 2
    return 2 * EARTH_KM * asin(min(1.0, sqrt(h)))


def fibre_round_trip_ms(km: float) -> float:
    """There and back through fibre laid straight."""
    return 2 * km / (LIGHT_KM_S / FIBRE_INDEX) * 1000


@dataclass(frozen=True, slots=True)
class Distance:
    """A measured round trip taken apart."""

    km: float
    physics_ms: float
    """What light in fibre needs for the great circle and back."""
    detour_ms: float
    """The rest; negative where the places cannot be the true ones."""

    @property
    def impossible(self) -> bool:
        """Whether it was faster than light in fibre: the other end is not where it was said to be."""
        return self.detour_ms < 0

    def sentence(self, net_ms: float) -> str:
        """For people."""
        if self.impossible:
            return (
                f"net {net_ms:.1f} ms is less than light in fibre needs for {self.km:,.0f} km "
                f"({self.physics_ms:.1f} ms): the other end of the connection is nearer, an edge perhaps"
            )
        share = self.physics_ms / net_ms if net_ms else 0.0
        return (
            f"of net {net_ms:.1f} ms, {self.physics_ms:.1f} ms ({share:.0%}) is physics "
            f"({self.km:,.0f} km of great circle at the speed of light in fibre), "
            f"{self.detour_ms:.1f} ms is detour"
        )


def distance(a: Place, b: Place, net_ms: float) -> Distance:
    """Take `net_ms` between two places apart."""
    km = great_circle_km(a, b)
    physics = fibre_round_trip_ms(km)
    return Distance(km, physics, net_ms - physics)
