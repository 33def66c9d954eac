"""Run by a Python that has litellm: five dialects of one server, given by its address.

Prints a line of JSON for each: what was asked, and what came of it. Knows nothing of Tailrace.
"""

import json
import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm

URL, EMBEDDER, RERANKER = sys.argv[1:]
TEXTS = ["친절하고 맛있어요", "주차가 불편해요", "The soup was cold"]
QUERY = "주차"
litellm.telemetry = False
litellm.suppress_debug_info = True


def embed(name: str, **more: object) -> object:
    """The length of the first vector."""
    reply = litellm.embedding(model=name, input=TEXTS, api_key="any", **more)
    return [len(reply.data[0]["embedding"]), len(reply.data)]


def rerank(name: str, **more: object) -> object:
    """The index of the best document, and how many came back."""
    reply = litellm.rerank(model=name, query=QUERY, documents=TEXTS, top_n=2, api_key="any", **more)
    return [reply.results[0]["index"], len(reply.results)]


CALLS = {
    "openai embeddings": lambda: embed(f"openai/{EMBEDDER}", api_base=f"{URL}/v1"),
    "infinity embeddings": lambda: embed(f"infinity/{EMBEDDER}", api_base=URL),
    "infinity rerank": lambda: rerank(f"infinity/{RERANKER}", api_base=URL),
    "infinity rerank with documents": lambda: rerank(
        f"infinity/{RERANKER}", api_base=URL, return_documents=True
    ),
    "huggingface rerank": lambda: rerank(f"huggingface/{RERANKER}", api_base=URL),
    "cohere rerank": lambda: rerank(f"cohere/{RERANKER}", api_base=URL),
    "jina_ai rerank": lambda: rerank(f"jina_ai/{RERANKER}", api_base=f"{URL}/v1/rerank"),
    "hosted_vllm rerank": lambda: rerank(f"hosted_vllm/{RERANKER}", api_base=f"{URL}/v1"),
}

for call, make in CALLS.items():
    try:
        print(json.dumps({"call": call, "made": make()}), flush=True)
    except Exception as fault:  # noqa: BLE001 - the caller judges
        print(json.dumps({"call": call, "fault": f"{type(fault).__name__}: {fault}"}), flush=True)
