"""The rerank stage over HTTP: a real cross-encoder behind its lane, and an answer that says what it lacks."""

import pytest

from bookshops import serving_books

BOOKS = [
    {"id": f"d{n}", "title": title}
    for n, title in enumerate(["가나다 바다", "바다", "나라 바다 하", "바다 사자", "파도 바다 가"])
]


@pytest.fixture
def serving(tmp_path, tiny_embedder_folder, tiny_cross_encoder_folder):
    def with_settings(**more):
        settings = {
            "model__source": f"dir:{tiny_embedder_folder}",
            "search__rerank": f"dir:{tiny_cross_encoder_folder}",
            "search__rerank_window": 3,
            "search__rerank_ms": 20_000.0,
            "search__embed_ms": 20_000.0,
            "store__catalogue": False,
            "threads": 2,
        }
        return serving_books(tmp_path / "books.db", **settings | more)

    return with_settings


def filled(shop):
    assert shop.ask("POST", "/api/books/documents", json={"documents": BOOKS}).status_code == 200
    return shop


def test_the_best_are_reread_through_a_lane_and_every_hit_tells_it(serving):
    with serving(search__rerank="off") as shop:
        fused = filled(shop).search("바다")
    assert (fused["fusion"]["rerank"], fused["hits"][0]["rerank"]) == (None, None)
    with serving() as shop:
        found = shop.search("바다")
        lanes = shop.ask("GET", "/api/books/stats").json()["lanes"]
        served = shop.server.reranker.served.served.lane
    assert found["degraded"] == []
    assert found["fusion"]["rerank"]["window"] == 3
    assert "reranker" in lanes
    assert served.name == "reranker"
    head = found["hits"][:3]
    scores = [hit["rerank"]["score"] for hit in head]
    assert scores == sorted(scores, reverse=True)
    before = [hit["id"] for hit in fused["hits"]]
    assert [before[hit["rerank"]["before"] - 1] for hit in head] == [hit["id"] for hit in head]
    assert [hit["id"] for hit in found["hits"][3:]] == before[3:]
    assert all(hit["rerank"] is None for hit in found["hits"][3:])


def test_a_stage_that_cannot_come_in_time_costs_the_order_and_nothing_else(serving):
    with serving(search__rerank="off") as shop:
        fused = filled(shop).ids("바다")
    with serving(search__rerank_ms=0.001) as shop:
        found = shop.search("바다")
        assert shop.metric("books_degraded_total", reason="rerank") == 1
    assert (found["mode"], found["degraded"]) == ("hybrid", ["rerank"])
    assert [hit["id"] for hit in found["hits"]] == fused


def test_without_a_query_vector_nothing_is_reread(serving):
    with serving(search__embed_ms=0.001) as shop:
        found = filled(shop).search("바다")
    assert found["mode"] == "keyword"
    assert "rerank" not in found["degraded"]
    assert all(hit["rerank"] is None for hit in found["hits"])
