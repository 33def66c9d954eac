"""Writes the golden files: the shapes of four tools, with figures that are easy to check by hand."""

import json
from pathlib import Path

HERE = Path(__file__).parent
T0 = 1_764_558_000.0


def guidellm():
    def request(at, late, wait, think, speak, close):
        begun = at + late
        first = begun + wait
        timings = {
            "targeted_start": at,
            "request_start": begun,
            "first_token_iteration": first,
            "first_output_token_iteration": first + think,
            "last_token_iteration": first + think + speak,
            "request_end": first + think + speak + close,
            "resolve_end": first + think + speak + close,
        }
        return {
            "type_": "generative_request_stats",
            "request_id": f"r{at}",
            "info": {"status": "completed", "timings": timings, "error": None},
            "prompt_tokens": 20,
            "output_tokens": 8,
        }

    good = [request(T0 + i, 0.002, 0.1, 0.05 * (i % 2), 0.2, 0.003) for i in range(12)]
    cut = [request(T0 + 20, 0.0, 0.1, 0.0, 0.1, 0.0)]
    body = {
        "benchmarks": [
            {
                "config": {"strategy": {"type_": "poisson"}},
                "requests": {"successful": good, "incomplete": cut, "errored": []},
            }
        ]
    }
    (HERE / "guidellm.json").write_text(json.dumps(body, indent=1) + "\n")


def vllm():
    body = {
        "date": "20251201-030000",
        "backend": "openai-chat",
        "model_id": "some/model",
        "request_rate": 2.0,
        "duration": 6.0,
        "completed": 11,
        "request_throughput": 1.83,
        "input_lens": [20] * 12,
        "output_lens": [5] * 11 + [0],
        "ttfts": [0.1 + i / 100 for i in range(11)] + [0.0],
        "itls": [[0.02, 0.02, 0.03, 0.03]] * 11 + [[]],
        "start_times": [1000.0 + i / 2 for i in range(12)],
        "errors": [""] * 11 + ["Connection reset"],
    }
    (HERE / "vllm.json").write_text(json.dumps(body, indent=1) + "\n")


def aiperf():
    lines = []
    for i in range(12):
        start = int((T0 + i) * 1e9)
        metrics = {
            "request_latency": {"value": 400.0, "unit": "ms"},
            "time_to_first_token": {"value": 0.15, "unit": "s"},
            "http_req_blocked": {"value": 0.5, "unit": "ms"},
            "http_req_connecting": {"value": 2.0, "unit": "ms"},
            "http_req_sending": {"value": 0.1, "unit": "ms"},
            "output_sequence_length": {"value": 40, "unit": "tokens"},
        }
        metadata = {
            "request_start_ns": start,
            "request_end_ns": start + 400_000_000,
            "benchmark_phase": "warmup" if i == 0 else "profiling",
            "was_cancelled": i == 11,
        }
        lines.append(json.dumps({"metadata": metadata, "metrics": metrics, "error": None}))
    (HERE / "aiperf.jsonl").write_text("\n".join(lines) + "\n")


def k6():
    lines = [json.dumps({"type": "Metric", "metric": "http_reqs", "data": {"type": "counter"}})]
    for i in range(12):
        tags = {"status": "429" if i == 5 else "200", "url": "http://127.0.0.1:8000/api?q=1"}
        if i == 11:
            tags |= {"status": "0", "error": "request timeout", "error_code": "1050"}
        figures = {
            "http_reqs": 1,
            "http_req_duration": 30.0,
            "http_req_blocked": 6.0 if i == 0 else 0.01,
            "http_req_connecting": 2.0 if i == 0 else 0,
            "http_req_tls_handshaking": 3.0 if i == 0 else 0,
            "http_req_sending": 0.5,
            "http_req_waiting": 29.0,
            "http_req_receiving": 0.5,
            "http_req_failed": 0,
        }
        for metric, value in figures.items():
            data = {
                "time": f"2025-12-01T03:00:{i:02}.123456789+09:00",
                "value": value,
                "tags": tags,
            }
            lines.append(json.dumps({"type": "Point", "metric": metric, "data": data}))
    drop = {"time": "2025-12-01T03:00:20Z", "value": 3, "tags": {}}
    lines.append(json.dumps({"type": "Point", "metric": "dropped_iterations", "data": drop}))
    (HERE / "k6.json").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    for write in (guidellm, vllm, aiperf, k6):
        write()
