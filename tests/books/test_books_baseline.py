"""A remote embedding model as a baseline of `tailrace books quality`: a real server, and a moody one."""

import asyncio
import json
import os
import socket
import subprocess
import sys

import httpx
import numpy as np
import pytest

from apis import Api
from tailrace.apps.books.baseline import (
    BATCH_TEXTS,
    PAUSE_S_MAX,
    TRIES_MAX,
    Remote,
    RemoteBaseline,
    rankings,
)
from tailrace.models.errors import ModelUnavailable
from tailrace.models.open import silent
from tailrace.models.upstream_errors import UpstreamBusy, UpstreamDenied, UpstreamFailed
from tailrace.stores.errors import SpaceMismatch
from tailrace.stores.port import Document, Vectors
from upstream import Step, upstream

DOCUMENTS = [Document(f"d{n}", "책" * (n + 1)) for n in range(BATCH_TEXTS + 3)]


def asked(far, texts, remote=None, ask="queries"):
    """The vectors of texts by the scripted upstream, and the pauses that were made."""
    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)

    async def run():
        baseline = RemoteBaseline(remote or Remote(far.url, "far-model"), sleep=sleep)
        try:
            return await getattr(baseline, ask)(texts, silent)
        finally:
            await baseline.aclose()

    return asyncio.run(run()), pauses


def test_everything_goes_in_batches_and_comes_back_in_order_and_of_unit_length():
    with upstream() as far:
        made, pauses = asked(far, DOCUMENTS, ask="documents")
    assert [len(one.body["input"]) for one in far.asked] == [BATCH_TEXTS, 3]
    assert pauses == []
    assert made.rows.shape == (len(DOCUMENTS), 4)
    assert np.allclose(np.linalg.norm(made.rows, axis=1), 1.0, atol=1e-6)
    assert len(np.unique(made.rows, axis=0)) == len(DOCUMENTS)


def test_an_upstream_that_ends_hangs_up_on_whoever_is_still_there():
    with upstream() as far:
        caller = socket.create_connection(httpx.URL(far.url).netloc.decode().split(":"), 5.0)
        far.until(lambda: far.connections == 1)
    with caller:
        assert caller.recv(1) == b""


def test_a_pause_that_is_asked_for_is_kept_and_a_failure_is_tried_again_later_each_time():
    with upstream() as far:
        far.steps.extend([Step(429, {"Retry-After": "7"}), Step(500), Step(reset=True), Step(500)])
        made, pauses = asked(far, ["비"])
    assert len(made) == 1
    assert pauses[0] == 7.0
    assert pauses[1:] == sorted(set(pauses[1:])), "each pause longer than the one before"


@pytest.mark.parametrize(
    ("always", "error", "requests"),
    [
        (Step(500), UpstreamFailed, TRIES_MAX),
        (Step(401), UpstreamDenied, 1),
        (Step(429, {"Retry-After": str(PAUSE_S_MAX + 1)}), UpstreamBusy, 1),
    ],
    ids=["down", "key", "away for long"],
)
def test_what_asking_again_does_not_mend_ends_it(always, error, requests):
    with upstream() as far:
        far.always = always
        with pytest.raises(error):
            asked(far, ["비"])
        assert len(far.asked) == requests


def test_the_key_comes_from_the_environment_and_is_held_nowhere(monkeypatch):
    with upstream() as far:
        remote = Remote(far.url, "far-model", "FAR_KEY")
        with pytest.raises(ModelUnavailable, match="FAR_KEY is not set"):
            asked(far, ["비"], remote)
        monkeypatch.setenv("FAR_KEY", "hush-hush")
        asked(far, ["비"], remote)
    assert far.asked[0].headers["authorization"] == "Bearer hush-hush"
    assert "hush" not in repr(remote)


def test_vectors_are_compared_within_their_own_space_only():
    with upstream() as far:
        plain, _ = asked(far, ["비", "눈"])
        other, _ = asked(far, ["비", "눈"], Remote(far.url, "far-model", query_prefix="query: "))
    assert rankings(plain, plain, ["a", "b"], 10) == [["a", "b"], ["b", "a"]]
    with pytest.raises(SpaceMismatch):
        rankings(other, plain, ["a", "b"], 10)


def test_equal_neighbours_stand_in_the_order_of_their_ids():
    with upstream() as far:
        one, _ = asked(far, ["비"])
    same = Vectors(one.space, np.repeat(one.rows, 3, axis=0))
    assert rankings(one, same, ["c", "a", "b"], 2) == [["a", "b"]]


def quality(tmp_path, *words):
    return subprocess.run(
        [sys.executable, "-m", "tailrace.cli.main", "books", "quality", "--json", *words],
        env={
            **os.environ,
            "XDG_DATA_HOME": str(tmp_path),
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def test_an_address_without_a_model_is_a_mistake(tmp_path):
    said = quality(tmp_path, "--baseline", "http://127.0.0.1:9/v1")
    assert said.returncode == 2
    assert "--baseline-model" in said.stderr


@pytest.mark.model
@pytest.mark.usefixtures("real_embedder")
def test_our_own_model_behind_an_api_is_as_good_as_the_vector_leg(api: Api, tmp_path):
    run = quality(
        tmp_path,
        *("--baseline", f"{api.url}/v1", "--baseline-model", "multilingual-e5-small"),
        *("--baseline-query-prefix", "query: ", "--baseline-document-prefix", "passage: "),
    )
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["all"]["baseline"] == report["all"]["vector"]
    against = report["hybrid_minus"]["baseline"]
    assert against["recall@10"]["low"] <= against["recall@10"]["mean"] <= 0.2
    assert report["baseline"]["query_prefix"] == "query: "
