"""Batches of documents to a running book service, patient with one that is full. Speaks HTTP only."""

import http.client
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from urllib.parse import urlsplit

from tailrace.core.errors import TailraceError
from tailrace.search.ingest import Ingested
from tailrace.stores.port import Document
from tailrace.wire.headers import RETRY_AFTER_MS

TRIES_MAX = 60
"""How often one batch is tried while the service is full or away."""
ANSWER_S = 120.0
"""How long the service may take over one batch."""
PAUSE_S = 1.0
"""Between two tries, where the service does not say."""
PATH = "/api/books/documents"
LATER = frozenset({429, 502, 503, 504})


class ServiceRefused(TailraceError):
    """The book service did not take the documents."""


class Posting:
    """Documents to the service at `url`, batch by batch."""

    def __init__(self, url: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ServiceRefused(
                f"{url} is no address of a book service, such as http://127.0.0.1:8090"
            )
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        self._connection = kind(parts.hostname, parts.port, timeout=ANSWER_S)
        self._path = parts.path.rstrip("/") + PATH
        self._url = url
        self._sleep = sleep

    def post(self, documents: Sequence[Document], done: Ingested) -> None:
        """Write one batch; `done` counts it.

        Raises:
            ServiceRefused: the service cannot use it, or was full or away for too long.

        """
        body = json.dumps({"documents": [asdict(document) for document in documents]})
        why = ""
        for _ in range(TRIES_MAX):
            try:
                status, answer, pause_s = self._once(body)
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                why = f"{type(error).__name__}: {error}"
                self._sleep(PAUSE_S)
                continue
            if status == 200:
                made = json.loads(answer)
                done.inserted += made["inserted"]
                done.updated += made["updated"]
                done.unchanged += made["unchanged"]
                return
            why = f"{status} {answer.decode('utf-8', 'replace')[:300]}"
            if status not in LATER:
                break
            self._sleep(pause_s)
        raise ServiceRefused(f"{self._url} did not take {len(documents)} documents: {why}")

    def _once(self, body: str) -> tuple[int, bytes, float]:
        headers = {"Content-Type": "application/json"}
        self._connection.request("POST", self._path, body.encode(), headers)
        response = self._connection.getresponse()
        answer = response.read()
        said = response.getheader(RETRY_AFTER_MS, "")
        return response.status, answer, int(said) / 1000 if said.isdecimal() else PAUSE_S
