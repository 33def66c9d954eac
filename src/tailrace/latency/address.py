"""A URL taken apart into what a client needs of it."""

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, urlsplit

PORTS = {"http": 80, "https": 443}


class BadAddress(ValueError):
    """The URL names nothing that can be asked over HTTP: what is wrong, in one sentence."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to connect, and what to ask there."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query, as they stand in the request line."""
    authority: str
    """Host and port as the Host header spells them."""

    @property
    def origin(self) -> tuple[str, str, int]:
        """What connections are kept by."""
        return (self.scheme, self.host, self.port)


@lru_cache(maxsize=256)
def address(url: str) -> Address:
    """Take `url` apart; raises BadAddress. Credentials in the URL are refused: they belong in headers."""
    try:
        pieces = urlsplit(url)
        port = pieces.port
    except ValueError as error:
        raise BadAddress(f"{url!r} is no URL: {error}") from None
    if pieces.scheme not in PORTS:
        raise BadAddress(f"{url!r} does not start with http:// or https://")
    if pieces.username is not None or pieces.password is not None:
        raise BadAddress("a URL with a user or a password in it; give a header instead")
    if not pieces.hostname:
        raise BadAddress(f"{url!r} names no host")
    target = quote(pieces.path or "/", safe="/%:@!$&'()*+,;=~-._")
    if pieces.query:
        target += "?" + quote(pieces.query, safe="/%:@!$&'()*+,;=~-._?[]")
    host = f"[{pieces.hostname}]" if ":" in pieces.hostname else pieces.hostname
    default = PORTS[pieces.scheme]
    spelled = host if port in {None, default} else f"{host}:{port}"
    return Address(pieces.scheme, pieces.hostname, port or default, target, spelled)
