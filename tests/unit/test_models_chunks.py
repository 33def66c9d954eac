"""Cutting a batch into sub-batches."""

from hypothesis import given
from hypothesis import strategies as st

from tailrace.models.chunks import RUN_TOKENS, plan_chunks

LENGTHS = st.lists(st.integers(1, 200), max_size=60)


@given(LENGTHS, st.integers(1, 400), st.integers(1, 4))
def test_every_item_is_in_exactly_one_sub_batch(lengths: list[int], budget: int, ways: int) -> None:
    chunks = plan_chunks(lengths, budget, ways)
    assert sorted(index for chunk in chunks for index in chunk) == list(range(len(lengths)))


@given(LENGTHS, st.integers(1, 400), st.integers(1, 4))
def test_no_sub_batch_of_several_exceeds_the_budget(
    lengths: list[int], budget: int, ways: int
) -> None:
    for chunk in plan_chunks(lengths, budget, ways):
        padded = len(chunk) * max(lengths[index] for index in chunk)
        assert len(chunk) == 1 or padded <= budget


@given(LENGTHS)
def test_the_heaviest_come_first(lengths: list[int]) -> None:
    chunks = plan_chunks(lengths, 100, 2)
    weights = [len(chunk) * max(lengths[index] for index in chunk) for chunk in chunks]
    assert weights == sorted(weights, reverse=True)


def test_equal_items_make_equal_shares_for_two_ways() -> None:
    chunks = plan_chunks([30] * 24, budget=180, ways=2)
    assert [len(chunk) for chunk in chunks] == [6, 6, 6, 6]


def test_even_two_items_that_fit_one_sub_batch_use_both_ways() -> None:
    assert sorted(plan_chunks([10, 10], budget=400, ways=2)) == [[0], [1]]


def test_one_way_takes_what_fits_together() -> None:
    assert plan_chunks([10, 10], budget=400) == [[0, 1]]


def test_a_cut_falls_where_the_lengths_jump() -> None:
    assert plan_chunks([40, 10, 10, 40, 10], budget=400) == [[0, 3], [1, 2, 4]]


@given(LENGTHS, st.integers(1, 400))
def test_sorting_and_cutting_never_costs_more_than_running_one_by_one(
    lengths: list[int], budget: int
) -> None:
    chunks = plan_chunks(lengths, budget)
    padded = sum(len(chunk) * max(lengths[index] for index in chunk) for chunk in chunks)
    assert padded + RUN_TOKENS * len(chunks) <= sum(lengths) + RUN_TOKENS * len(lengths)
