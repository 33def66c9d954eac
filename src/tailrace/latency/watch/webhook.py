"""News of a watch as a POST to whoever wants them; a dead end is told and never stops the watch."""

import asyncio
from dataclasses import dataclass

import orjson

from tailrace.latency.address import address
from tailrace.latency.pool import Pool
from tailrace.latency.watch.rounds import Event

TRIES_MAX = 3
TIMEOUT_S = 5.0
PAUSE_S = 1.0
"""Before the second try; twice as long before each further one."""


@dataclass(frozen=True)
class Webhook:
    """Where to; the address may itself be a secret and is never printed beyond its host."""

    url: str
    key: str | None = None
    """Sent as a bearer token."""

    async def post(self, event: Event) -> str | None:
        """Tell it; what went wrong in one sentence, or None."""
        headers = {"content-type": "application/json"}
        if self.key:
            headers["authorization"] = f"Bearer {self.key}"
        body = orjson.dumps(event.to_json())
        wrong = ""
        for number in range(TRIES_MAX):
            if number:
                await asyncio.sleep(PAUSE_S * 2 ** (number - 1))
            async with Pool(connections=1) as pool:
                done = await pool.request("POST", self.url, headers, body, timeout_s=TIMEOUT_S)
            if done.failure is None and done.status is not None and done.status < 300:
                return None
            wrong = done.failure.kind if done.failure is not None else f"status {done.status}"
            if done.status is not None and 400 <= done.status < 500 and done.status != 429:
                break  # asked again it would say the same
        return f"the webhook at {address(self.url).authority} did not take it: {wrong}"
