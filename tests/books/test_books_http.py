"""The book service over HTTP: searches, pages, filters, documents, and what is not as it should be."""

import pytest

from boxes import parts_of, problem_of

SEARCH = "/api/books/search"


def test_a_hit_carries_ranks_and_scores_of_both_legs(shop):
    found = shop.search("바다 이야기")
    assert found["mode"] == "hybrid"
    assert found["degraded"] == []
    assert found["exact"] is True
    first = next(hit for hit in found["hits"] if hit["id"] == "a2")
    assert first["keyword"]["rank"] == 1
    assert first["vector"]["rank"] >= 1
    assert first["document"]["author"] == "나나"


def test_the_answer_says_how_the_legs_were_fused(shop):
    fusion = shop.search("바다")["fusion"]
    assert (fusion["method"], fusion["rank_base"]) == ("rrf", 1)
    assert set(fusion) == {"method", "k", "rank_base", "window", "weights", "ties", "rerank"}


def test_what_a_hit_scores_is_what_its_legs_say_by_the_printed_rule(shop):
    found = shop.search("바다 이야기")
    k = found["fusion"]["k"]
    weights = {hit["id"]: hit["keyword"]["weight"] for hit in found["hits"] if hit["keyword"]}
    assert max(weights.values()) == weights["a2"] == found["fusion"]["weights"]["keyword"]
    assert min(weights.values()) < weights["a2"]
    for hit in found["hits"]:
        legs = [hit[leg] for leg in ("keyword", "vector") if hit[leg]]
        added = sum(leg["weight"] / (k + leg["rank"]) for leg in legs)
        assert hit["score"] == pytest.approx(added)


def test_server_timing_names_the_parts_of_a_search(shop):
    answer = shop.ask("GET", SEARCH, params={"q": "바다 사자"})
    assert {"embed", "keyword", "vector", "fuse"} <= set(parts_of(answer.headers))


def test_get_and_post_ask_the_same(shop):
    posted = shop.ask("POST", SEARCH, json={"q": "바다", "size": 2})
    assert posted.json() == shop.search("바다", size=2)


def test_pages_neither_repeat_nor_leave_gaps(shop):
    whole = shop.ids("바다 하늘", size=4)
    pages = [shop.ids("바다 하늘", size=1, page=page) for page in (1, 2, 3, 4)]
    assert [id_ for page in pages for id_ in page] == whole


def test_a_page_beyond_the_end_is_empty_and_has_no_next(shop):
    found = shop.search("바다", page=99)
    assert (found["hits"], found["next"], found["total"]) == ([], None, 4)


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ({"category": "소설"}, {"a1", "a2"}),
        ({"category": "소설/외국"}, {"a2"}),
        ({"year_from": 2000, "year_to": 2010}, {"a2"}),
        ({"author": "ANN"}, {"a3"}),
        ({"category": "과학", "author": "하주"}, {"a4"}),
    ],
)
def test_filters_restrict_both_legs(shop, where, ids):
    assert set(shop.ids("바다", **where)) == ids


def test_an_unknown_category_is_told_as_such(shop):
    answer = shop.ask("GET", SEARCH, params={"q": "바다", "category": "시"})
    problem_of(answer, 422, "unknown-category")


def test_what_was_written_is_found_at_once_and_what_was_deleted_never(shop):
    book = {"title": "타자기", "author": "마마"}
    assert shop.ask("PUT", "/api/books/n1", json=book).status_code == 201
    assert shop.ids("타자기")[0] == "n1"
    assert shop.ask("PUT", "/api/books/n1", json=book | {"title": "사자"}).status_code == 200
    assert shop.search("타자기", mode="keyword")["hits"] == []
    assert shop.ask("DELETE", "/api/books/n1").status_code == 204
    assert "n1" not in shop.ids("사자")
    problem_of(shop.ask("GET", "/api/books/n1"), 404, "unknown-document")


def test_documents_that_are_there_as_they_are_cost_no_embedding(shop):
    rows = [{"id": "a3", "title": "The Cat", "author": "Ann Lee", "category": "과학", "year": 2011}]
    runs = shop.metric("books_runs_total", result="done")
    answer = shop.ask("POST", "/api/books/documents", json={"documents": rows})
    assert answer.json() == {"inserted": 0, "updated": 0, "unchanged": 1}
    assert shop.metric("books_runs_total", result="done") == runs


def test_a_bad_document_among_good_ones_writes_none(shop):
    rows = [{"id": "x1", "title": "바"}, {"id": "x2"}]
    answer = shop.ask("POST", "/api/books/documents", json={"documents": rows})
    assert "document 1" in problem_of(answer, 422, "bad-document")["detail"]
    problem_of(shop.ask("GET", "/api/books/x1"), 404, "unknown-document")


def test_similar_books_leave_the_book_itself_out(shop):
    hits = shop.ask("GET", "/api/books/a1/similar", params={"size": 3}).json()["hits"]
    assert [hit["rank"] for hit in hits] == [1, 2, 3]
    assert "a1" not in [hit["id"] for hit in hits]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"q": ""}, "invalid-input"),
        ({"q": "   "}, "invalid-input"),
        ({"q": "바" * 100_000}, "invalid-input"),
        ({"q": "바\0다"}, "invalid-input"),
        ({"q": "바", "size": 10_000}, "invalid-input"),
        ({"q": "바", "page": 0}, "invalid-input"),
        ({"q": "바", "mode": "magic"}, "invalid-input"),
        ({"q": "바", "colour": "red"}, "invalid-input"),
        ({}, "invalid-input"),
    ],
)
def test_a_search_that_cannot_be_made_is_told_why(shop, body, code):
    problem_of(shop.ask("POST", SEARCH, json=body), 422, code)


def test_a_lone_surrogate_is_told_as_such(shop):
    raw = b'{"q": "\\ud800"}'
    answer = shop.ask("POST", SEARCH, content=raw, headers={"content-type": "application/json"})
    assert "surrogate" in problem_of(answer, 422, "invalid-input")["detail"]


@pytest.mark.parametrize("q", ["C++", "a OR", '"', "NEAR(", "title:x", "🦊🦊", "%_'; --"])
def test_any_other_text_is_a_search(shop, q):
    assert shop.search(q)["total"] == 4


def test_emoji_alone_are_answered_by_the_vector_leg(shop):
    found = shop.search("🦊")
    assert found["fusion"]["weights"] == {"keyword": 0.0, "vector": 1.0}
    assert all(hit["keyword"] is None for hit in found["hits"])


def test_a_model_that_does_not_answer_in_time_degrades_the_search_visibly(shop):
    with shop.model_held():
        found = shop.search("바다 사자 하마", size=4)
    assert found["mode"] == "keyword"
    assert found["degraded"] == ["queue-timeout"] or found["degraded"] == ["model-timeout"]
    assert {hit["id"] for hit in found["hits"]} == {"a1", "a2", "a4"}
    reason = found["degraded"][0]
    assert shop.metric("books_degraded_total", reason=reason) == 1
    assert shop.search("바다 사자 하마")["mode"] == "hybrid"


def test_the_root_leads_to_the_page_and_the_numbers_tell_a_page_what_there_is(shop):
    root = shop.ask("GET", "/")
    assert (root.status_code, root.headers["location"]) == (307, "books")
    page = shop.ask("GET", "/books")
    assert page.headers["content-type"].startswith("text/html")
    assert shop.ask("GET", "/page/shared/base.css").status_code == 200
    told = shop.ask("GET", "/api/books/stats").json()
    assert told["turn"]["model"] is None
    assert told["turn"]["clocks"]["total_s"] == 30
    assert told["cover"]["offered"] in {True, False}
