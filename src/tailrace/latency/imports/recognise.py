"""Which tool wrote a file, and the runs in it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from tailrace.latency.imports.aiperf import read_aiperf
from tailrace.latency.imports.guidellm import read_guidellm
from tailrace.latency.imports.k6 import read_k6
from tailrace.latency.imports.shapes import BadImport, Imported
from tailrace.latency.imports.vllm_bench import read_vllm

__all__ = ["BadImport", "Imported", "recognise"]

FILE_BYTES_MAX = 1 << 30
"""The largest file that is read."""
KNOWN = "guidellm, aiperf, vllm bench and k6 are known"


def recognise(path: Path) -> list[Imported]:
    """The runs of a result file; raises BadImport."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise BadImport(f"{path} is larger than {FILE_BYTES_MAX >> 20} MiB")
        data = path.read_bytes()
    except OSError as error:
        raise BadImport(f"{path} cannot be read: {error.strerror}") from None
    if not data.strip():
        raise BadImport(f"{path} is empty")
    try:
        return _read(data, path)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, BadImport):
            raise
        raise BadImport(f"{path} is damaged: {error}") from None


def _read(data: bytes, path: Path) -> list[Imported]:
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError:
        body = None
    if isinstance(body, Mapping) and "benchmarks" in body:
        return read_guidellm(body)
    if isinstance(body, Mapping) and {"ttfts", "mean_ttft_ms", "request_throughput"} & body.keys():
        return read_vllm(body)
    if isinstance(body, Mapping) and "root_group" in body:
        raise BadImport(f"{path} is a summary of k6, without requests; write it with --out json")
    if isinstance(body, Mapping) and "aiperf_version" in body:
        raise BadImport(f"{path} is a summary of aiperf; take its profile_export.jsonl")
    first = _first(data, path)
    if {"metadata", "metrics"} <= first.keys():
        return read_aiperf(_lines(data, path))
    if {"type", "metric"} <= first.keys():
        return read_k6(_lines(data, path))
    raise BadImport(f"{path} is of no tool that is known; {KNOWN}")


def _first(data: bytes, path: Path) -> Mapping[str, Any]:
    return next(_lines(data, path), {})


def _lines(data: bytes, path: Path) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            body = orjson.loads(line)
        except orjson.JSONDecodeError:
            if number == 1:
                raise BadImport(f"{path} is no JSON; {KNOWN}") from None
            raise BadImport(f"line {number} of {path} is no JSON: the file is cut off") from None
        if not isinstance(body, Mapping):
            raise BadImport(f"line {number} of {path} is no object; {KNOWN}")
        yield body
