"""Fusing two ranked lists, the keyword leg's vote, and the figures of rankings."""

import random

import pytest

from tailrace.search.fuse import Weights, fuse
from tailrace.search.quality import METRICS, differences, figures, scores
from tailrace.search.vote import VoteRule
from tailrace.stores.port import Hit, KeywordHit, KeywordLeg

EVEN = Weights(1.0, 1.0)


def leg(*ids):
    return [Hit(id_, rank, 1.0 / rank) for rank, id_ in enumerate(ids, 1)]


def ids(fused):
    return [one.id for one in fused]


def test_agreement_beats_a_single_first_place():
    assert ids(fuse(leg("a", "b"), leg("c", "b"), EVEN, k=20))[0] == "b"


def test_ties_stand_by_the_best_rank_and_then_by_id():
    assert ids(fuse(leg("b"), leg("a"), EVEN, k=20)) == ["a", "b"]


def test_the_order_in_which_hits_come_in_changes_nothing():
    words, near = leg(*"abcdef"), leg(*"fdbxyz")
    expected = ids(fuse(words, near, EVEN, k=20))
    for seed in range(20):
        random.Random(seed).shuffle(words)
        random.Random(seed + 1).shuffle(near)
        assert ids(fuse(words, near, EVEN, k=20)) == expected


def test_one_leg_alone_keeps_its_order():
    assert ids(fuse(leg(*"cab"), (), Weights(1.0, 0.0), k=20)) == ["c", "a", "b"]


def voted(terms, held):
    hit = KeywordHit("a", 1, 1.0, {"title": frozenset(held)})
    return VoteRule().weights(KeywordLeg((hit,), dict.fromkeys(terms, 1), exact=True), terms)


def test_the_keyword_leg_votes_the_more_the_more_of_the_query_its_best_hit_holds():
    terms = ["가나", "나다", "다라", "라마"]
    weights = [voted(terms, terms[:held]).keyword for held in range(5)]
    assert weights == sorted(weights)
    assert (weights[0], weights[4]) == (VoteRule().least, VoteRule().most)


def test_a_keyword_leg_without_hits_does_not_vote():
    assert VoteRule().weights(KeywordLeg((), {}, exact=True), []) == Weights(0.0, 1.0)


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
