"""Messages between this process and one that runs a session: a JSON head, then the bytes of arrays.

Both sides know this file and nothing else of each other.
"""

from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import orjson

from tailrace.models.port import FloatArray
from tailrace.models.tokens import Tokens

Head = dict[str, Any]


def send_batch(connection: Connection, batch: Sequence[Tokens], output: str) -> None:
    """Ask for one run."""
    lengths = [len(tokens.ids) for tokens in batch]
    connection.send_bytes(orjson.dumps({"output": output, "lengths": lengths}))
    flat = [
        [i for tokens in batch for i in tokens.ids],
        [i for tokens in batch for i in tokens.types],
    ]
    connection.send_bytes(np.asarray(flat, np.int64).tobytes())


def receive_batch(connection: Connection) -> tuple[list[Tokens], str]:
    """What is asked; raises EOFError when the other side is gone."""
    head = receive_head(connection)
    flat = np.frombuffer(connection.recv_bytes(), np.int64).reshape(2, -1)
    ends = np.cumsum(head["lengths"])
    starts = ends - head["lengths"]
    batch = [
        Tokens(flat[0, start:end].tolist(), flat[1, start:end].tolist())
        for start, end in zip(starts, ends, strict=True)
    ]
    return batch, head["output"]


def send_head(connection: Connection, head: Head) -> None:
    """Say something without an array."""
    connection.send_bytes(orjson.dumps(head))


def receive_head(connection: Connection) -> Head:
    """What is said; raises EOFError when the other side is gone."""
    head: Head = orjson.loads(connection.recv_bytes())
    return head


def send_array(connection: Connection, array: FloatArray) -> None:
    """Answer a run."""
    send_head(connection, {"shape": array.shape})
    connection.send_bytes(np.ascontiguousarray(array, np.float32).tobytes())


def receive_array(connection: Connection, head: Head) -> FloatArray:
    """The array that belongs to a head with a shape."""
    flat = np.frombuffer(connection.recv_bytes(), np.float32)
    return flat.reshape(head["shape"])
