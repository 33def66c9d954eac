"""Fusing two ranked lists, the keyword leg's vote, and the figures of rankings."""

import random

import pytest

from tailrace.search.fuse import Votes, equal_votes, fuse
from tailrace.search.quality import METRICS, differences, figures, scores
from tailrace.search.text import Bigrams
from tailrace.search.vote import VoteRule, asked_terms
from tailrace.stores.port import Hit, KeywordHit, KeywordLeg


def leg(*ids):
    return [Hit(id_, rank, 1.0 / rank) for rank, id_ in enumerate(ids, 1)]


def fused(words, near):
    return [one.id for one in fuse(words, near, equal_votes(words), k=20)]


def test_agreement_beats_a_single_first_place():
    assert fused(leg("a", "b"), leg("c", "b"))[0] == "b"


def test_ties_stand_by_the_best_rank_and_then_by_id():
    assert fused(leg("b"), leg("a")) == ["a", "b"]


def test_the_order_in_which_hits_come_in_changes_nothing():
    words, near = leg(*"abcdef"), leg(*"fdbxyz")
    expected = fused(words, near)
    for seed in range(20):
        random.Random(seed).shuffle(words)
        random.Random(seed + 1).shuffle(near)
        assert fused(words, near) == expected


def test_one_leg_alone_keeps_its_order():
    assert fused(leg(*"cab"), ()) == ["c", "a", "b"]


def test_a_document_counts_by_its_own_vote_and_carries_it():
    words = leg("a", "b")
    made = fuse(words, leg("a", "b"), Votes((0.2, 2.0), 1.0), k=20)
    assert [(one.id, one.vote) for one in made] == [("b", 2.0), ("a", 0.2)]


def votes(text, *titles):
    """The votes for documents of these titles, with the terms as the default analyser makes them."""
    analyzer = Bigrams()
    terms = analyzer.query_terms(text)
    hits = tuple(
        KeywordHit(title, rank, 1.0, frozenset(analyzer.document_terms(title)) & set(terms))
        for rank, title in enumerate(titles, 1)
    )
    found = KeywordLeg(hits, dict.fromkeys(terms, 1), exact=True)
    return VoteRule().votes(found, asked_terms(analyzer, text, terms)).keyword


def test_a_vote_grows_with_what_the_document_holds_of_the_query():
    found = votes("가나다라마", "바", "가나", "가나다", "가나다라", "가나다라마")
    assert list(found) == sorted(set(found))
    assert (found[0], found[-1]) == (VoteRule().least, VoteRule().most)


def test_all_documents_that_hold_all_of_it_count_alike_whatever_their_rank():
    assert len(set(votes("김영하", "김영하 소설", "김영하 산문", "김영하"))) == 1


def test_what_meets_across_a_space_was_not_asked_for():
    assert votes("한강 작가", "작가 한강")[0] == VoteRule().most
    assert votes("한강작가", "작가 한강")[0] < VoteRule().most


def test_a_query_of_nothing_that_is_looked_up_gives_no_document_a_vote_beyond_the_least():
    assert votes("🦊", "가나") == (VoteRule().least,)
    assert votes("") == ()


def test_recall_counts_against_what_can_be_found():
    relevant = {"a": 2, "b": 1, "c": 1}
    by_metric = dict(zip(METRICS, scores(["a", "x", "b"], relevant), strict=True))
    assert by_metric["recall@1"] == 1.0
    assert by_metric["recall@10"] == pytest.approx(2 / 3)
    assert by_metric["mrr@10"] == 1.0


def test_a_miss_is_zero_and_stays_in_the_mean():
    table = [scores(["a"], {"a": 2}), scores(["x"], {"a": 2})]
    assert figures(table)["mrr@10"].mean == 0.5


def test_a_difference_of_rankings_that_are_the_same_is_nothing_for_sure():
    table = [scores(["a"], {"a": 2}), scores(["x", "a"], {"a": 2})]
    found = differences(table, table)["mrr@10"]
    assert (found.low, found.mean, found.high) == (0.0, 0.0, 0.0)
