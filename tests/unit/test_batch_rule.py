"""Which waiting work shares a run."""

from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.core.batch import BatchRule
from tailrace.core.work import Stamps, Work


def work(key: str | None = "b", cost: float = 1.0, yields: float = 0.0) -> Work:
    return Work("x", Stamps(0.0), cost=cost, batch_key=key, yields=yields)


def test_work_without_a_key_never_shares() -> None:
    rule, alone = BatchRule(8), work(None)
    assert rule.companions([alone], [work(None), work("b")]) == []
    assert rule.closed([alone])


def test_only_equal_keys_share_and_they_keep_their_order() -> None:
    first, one, other, two = work("a"), work("a"), work("b"), work("a")
    assert BatchRule(8).companions([first], [one, other, two]) == [one, two]


def test_bulk_is_company_for_bulk_alone() -> None:
    quick, bulk, more = work(), work(yields=5.0), work(yields=5.0)
    assert BatchRule(8).companions([quick], [bulk, more]) == []
    assert BatchRule(8).companions([bulk], [quick, more]) == [more]


def test_no_more_share_than_the_rule_allows() -> None:
    rule = BatchRule(3)
    assert len(rule.companions([work()], [work() for _ in range(9)])) == 2
    assert len(rule.companions([work(), work()], [work() for _ in range(9)])) == 1
    assert not rule.closed([work(), work()])
    assert rule.closed([work(), work(), work()])


def test_what_costs_too_much_is_passed_over_for_what_still_fits() -> None:
    big, small = work(cost=5.0), work(cost=1.0)
    assert BatchRule(8, cost_max=4.0).companions([work(cost=2.0)], [big, small]) == [small]


def test_one_that_alone_exceeds_the_cost_still_runs_but_alone() -> None:
    rule, huge = BatchRule(8, cost_max=4.0), work(cost=50.0)
    assert rule.runs([huge, work(), work()])[0] == [huge]


@settings(max_examples=150, deadline=None)
@given(
    line=st.lists(
        st.builds(work, st.sampled_from([None, "a", "b"]), st.floats(0.5, 5.0)), max_size=25
    ),
    items_max=st.integers(1, 6),
    cost_max=st.sampled_from([3.0, 8.0, inf]),
)
def test_the_planned_runs_hold_everybody_once_and_keep_the_rule(
    line: list[Work], items_max: int, cost_max: float
) -> None:
    runs = BatchRule(items_max, cost_max).runs(line)
    assert sorted(map(id, (w for run in runs for w in run))) == sorted(map(id, line))
    place = {id(work): i for i, work in enumerate(line)}
    firsts = [place[id(run[0])] for run in runs]
    assert firsts == sorted(firsts)
    for run in runs:
        assert len(run) == 1 or run[0].batch_key is not None
        assert len({work.batch_key for work in run}) == 1
        assert len(run) <= items_max
        assert len(run) == 1 or sum(work.cost for work in run) <= cost_max + 1e-9


def test_the_usual_number_of_pieces_fills_a_run_and_is_never_none() -> None:
    rule = BatchRule(items_max=8, cost_max=256.0)
    assert [rule.usual_items(cost) for cost in (10.0, 64.0, 100.0, 256.0, 900.0)] == [8, 4, 2, 1, 1]
    assert BatchRule(items_max=8).usual_items(5.0) == 8
