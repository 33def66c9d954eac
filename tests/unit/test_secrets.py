"""Keys are compared whole and by digest, and no message about a configuration repeats a secret."""

import contextlib
import hmac
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from tailrace.apps.api.settings import ApiSettings
from tailrace.serve import keys as keys_module
from tailrace.serve.keys import Keys, Unauthorized
from tailrace.serve.settings import BadConfiguration, load

KNOWN = {"first-key": "one", "second-key": "two", "third-key": "three"}


def asking(key: str) -> Request:
    headers = [(b"authorization", f"Bearer {key}".encode())]
    return Request({"type": "http", "headers": headers, "client": ("127.0.0.1", 1)})


@pytest.mark.parametrize(("key", "name"), KNOWN.items())
def test_a_known_key_is_its_owner(key: str, name: str) -> None:
    assert Keys(KNOWN).caller(asking(key)) == name


@pytest.mark.parametrize(
    "key", ["", "first", "first-key2", "FIRST-KEY", "first-key\u00e9", "x" * 9999]
)
def test_any_other_key_is_nobody(key: str) -> None:
    headers = [(b"authorization", b"Bearer " + key.encode("latin-1", "replace"))]
    with pytest.raises(Unauthorized):
        Keys(KNOWN).caller(Request({"type": "http", "headers": headers}))


@pytest.mark.parametrize("key", ["first-key", "third-key", "no-key", "a" * 500])
def test_every_known_key_is_compared_and_all_in_digests_of_one_length(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[int, int]] = []

    def watched(known: bytes, given: bytes) -> bool:
        compared.append((len(known), len(given)))
        return hmac.compare_digest(known, given)

    monkeypatch.setattr(keys_module, "compare", watched)
    with contextlib.suppress(Unauthorized):
        Keys(KNOWN).caller(asking(key))
    assert compared == [(32, 32)] * len(KNOWN)


SECRETS = "geheim"
REMOTE = {"name": "far", "kind": "remote-embedding", "model": "m", "url": "http://far.example"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"models": [{**REMOTE, "url": f"http://me:{SECRETS}@far.example/v1"}]},
        {"models": [{**REMOTE, "url": f"https://far.example/v1?api_key={SECRETS}"}]},
        {"models": [{**REMOTE, "key_env": f"sk-{SECRETS}"}]},
        {"models": [{**REMOTE, "api_key": SECRETS}]},
        {"models": [{**REMOTE, "kind": "no-such-kind", "api_key": SECRETS}]},
        {"models": [{**REMOTE, "slots": f"sk-{SECRETS}-12345"}]},
        {"keys": {"file": [SECRETS]}},
    ],
)
def test_no_message_repeats_a_secret(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadConfiguration) as refused:
        load(ApiSettings, environ={}, overrides=wrong)
    assert SECRETS not in str(refused.value)
    assert refused.value.mistakes


def test_what_is_no_secret_is_still_repeated() -> None:
    with pytest.raises(BadConfiguration, match="given: 70000"):
        load(ApiSettings, environ={}, overrides={"server.port": 70000})


def test_a_file_without_keys_is_refused_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# none\n")
    with pytest.raises(BadConfiguration, match="has no key"):
        Keys.read(file)
