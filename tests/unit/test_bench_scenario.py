"""A scenario says what it is, or what is wrong with it, before anything is sent."""

from itertools import pairwise

import pytest

from tailrace.bench.arrivals import arrivals
from tailrace.bench.asking import bare, is_loopback, pairs, target_of, texts_of
from tailrace.bench.errors import BadScenario
from tailrace.bench.generator import Phases
from tailrace.bench.scenario import AskTable, LoadTable, cases, read_scenario, shipped
from tailrace.bench.units import Amount
from tailrace.wire.record import Row


def load(**more):
    return LoadTable.model_validate(more)


def scenario(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("10%", Amount(10, "%")),
        ("10req", Amount(10, "req")),
        ("10s", Amount(10, "s")),
        ("500ms", Amount(0.5, "s")),
        ("2m", Amount(120, "s")),
    ],
)
def test_an_amount_has_its_unit(text, amount):
    assert Amount.parse(text) == amount


@pytest.mark.parametrize("text", ["10", 10, "ten", "110%", "1.5req", "-1s", ""])
def test_a_number_without_a_unit_is_refused(text):
    with pytest.raises(ValueError, match=r"amount|whole|parts"):
        Amount.parse(text)


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_scenario_can_be_asked(name):
    found = read_scenario(name)
    assert found.name == name
    for case in cases(found):
        target_of(case)
        assert is_loopback(case.target.url)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "is no TOML"),
        ("name = 'a'", "question"),
        ("name='a'\nquestion='b'\nspeed=1", "speed"),
        ("name='a'\nquestion='b'\n[load]\nwarm_up=10", "with the unit"),
        ("name='a'\nquestion='b'\n[load]\nlength='10%'", "a share of what"),
        ("name='a'\nquestion='b'\n[load]\nrate=0", "rate"),
        ("name='a'\nquestion='b'\n[load]\nrate=nan", "rate"),
        ("name='a'\nquestion='b'\n[load]\nlength='2h'", "length"),
        ("name='a'\nquestion='b'\n[load]\nkind='staircase'", "either rates"),
        ("name='a'\nquestion='b'\n[load]\nkind='replay'", "needs a trace"),
        ("name='a'\nquestion='b'\n[load]\nthink='3req'", "think is a time"),
        ("name='../a'\nquestion='b'", "name"),
    ],
)
def test_what_cannot_be_run_is_one_sentence(tmp_path, text, said):
    with pytest.raises(BadScenario, match=said) as bad:
        read_scenario(scenario(tmp_path, text))
    assert "\n" not in str(bad.value)


def test_an_unknown_name_says_which_there_are():
    with pytest.raises(BadScenario, match="embed-grid"):
        read_scenario("nothing")


def test_a_grid_is_every_combination_and_bounded(tmp_path):
    text = "name='a'\nquestion='b'\n[grid]\n'target.batch'=[1,8]\n'load.clients'=[1,4,8]"
    found = cases(read_scenario(scenario(tmp_path, text)))
    assert [case.name for case in found][:2] == ["batch 1, clients 1", "batch 1, clients 4"]
    assert {(case.target.batch, case.load.clients) for case in found} == {
        (batch, clients) for batch in (1, 8) for clients in (1, 4, 8)
    }
    wide = f"name='a'\nquestion='b'\n[grid]\n'load.seed'={list(range(100))}"
    with pytest.raises(BadScenario, match="more than 64"):
        cases(read_scenario(scenario(tmp_path, wide)))
    with pytest.raises(BadScenario, match="no values"):
        cases(read_scenario(scenario(tmp_path, "name='a'\nquestion='b'\n[grid]\n'load.seed'=[]")))


def test_a_setting_that_is_fixed_leaves_the_grid():
    found = cases(read_scenario("embed-grid", {"load.clients": 2}))
    assert {case.load.clients for case in found} == {2}
    assert len(found) == 4


def test_other_targets_are_asked_the_same_in_turns(tmp_path):
    text = "name='a'\nquestion='b'\n[against.B]\nurl='http://127.0.0.1:1/v1'"
    first, second = cases(read_scenario(scenario(tmp_path, text)))
    assert (first.place, second.place) == ("A", "B")
    assert second.target.url == "http://127.0.0.1:1/v1"
    assert second.load == first.load


def test_the_same_seed_gives_the_same_arrivals():
    one, two = load(seed=3, rate=50), load(seed=3, rate=50)
    assert arrivals(one) == arrivals(two)
    assert arrivals(one) != arrivals(load(seed=4, rate=50))
    assert arrivals(one, 0) != arrivals(one, 1)


def test_poisson_arrivals_come_at_the_rate():
    found = arrivals(load(rate=200, length="100s"))
    assert len(found) == pytest.approx(20_000, rel=0.03)
    assert all(a.at_s <= b.at_s for a, b in pairwise(found))


def test_constant_and_burst_arrivals_are_even():
    assert [a.at_s for a in arrivals(load(kind="constant", rate=4, length="1s"))] == [
        0.0,
        0.25,
        0.5,
        0.75,
    ]
    burst = arrivals(load(kind="burst", size=3, every="2s", length="5s"))
    assert [a.at_s for a in burst] == [0, 0, 0, 2, 2, 2, 4, 4, 4]


def test_a_staircase_climbs_in_equal_steps():
    found = arrivals(load(kind="staircase", rates=[10, 40], length="20s"))
    steps = [a.step for a in found]
    assert steps == sorted(steps)
    assert steps.count(40) > 3 * steps.count(10)
    assert all((a.at_s < 10) == (a.step == 10) for a in found)


def test_a_recorded_trace_is_replayed(tmp_path):
    plain, rows = tmp_path / "t.txt", tmp_path / "rows.jsonl"
    plain.write_text("5.0\n6.5\n5.5\n")
    rows.write_bytes(b"".join(Row(1.0, {}, at_s=at).to_line() for at in (5.0, 5.5, 6.5)))
    for trace in (plain, rows):
        found = arrivals(load(kind="replay", trace=str(trace), length="100s"))
        assert [a.at_s for a in found] == [0.0, 0.5, 1.5]
    fast = arrivals(load(kind="replay", trace=str(plain), speed=2, length="100s"))
    assert [a.at_s for a in fast] == [0.0, 0.25, 0.75]


@pytest.mark.parametrize(
    ("text", "said"), [("", "is empty"), ("1\nsoon\n", "line 2"), ("{}\n", "line 1")]
)
def test_a_trace_that_is_none_is_one_sentence(tmp_path, text, said):
    path = tmp_path / "t"
    path.write_text(text)
    with pytest.raises(BadScenario, match=said):
        arrivals(load(kind="replay", trace=str(path)))
    with pytest.raises(BadScenario, match="cannot be read"):
        arrivals(load(kind="replay", trace=str(tmp_path / "none")))


def test_too_many_requests_are_refused_before_any_is_sent():
    with pytest.raises(BadScenario, match="more than 1,000,000"):
        arrivals(load(kind="constant", rate=20_000, length="1h"))


def test_the_first_requests_are_kept_apart():
    phases = Phases(load(cold="2req", warm_up="10%", length="10s"), 10.0, 100)
    assert [phases.of(n, at) for n, at in ((0, 0.0), (1, 0.1), (2, 0.2), (30, 0.9), (31, 1.0))] == [
        "cold",
        "cold",
        "warm-up",
        "warm-up",
        "steady",
    ]
    counted = Phases(load(cold="2req", warm_up="3req", length="100req"), None, 100)
    assert [counted.of(n, 9.0) for n in (1, 4, 5)] == ["cold", "warm-up", "steady"]


def test_texts_are_all_different_and_pair_between_runs():
    ask = AskTable(distinct=100)
    assert len(set(texts_of(ask))) == 100
    (case,) = cases(read_scenario("embed"))
    first, second = target_of(case, "aaaa"), target_of(case, "bbbb")
    assert first.ask(3).prompt != second.ask(3).prompt
    assert pairs(case)(3) == pairs(case)(3) != pairs(case)(4)


def test_the_key_comes_from_the_environment_and_is_kept_nowhere():
    (case,) = cases(read_scenario("embed", {"target.key_env": "SOME_KEY"}))
    with pytest.raises(BadScenario, match="no SOME_KEY"):
        target_of(case, environ={})
    target = target_of(case, environ={"SOME_KEY": "s3cret"})
    assert target.ask(0).headers["authorization"] == "Bearer s3cret"
    assert "s3cret" not in str(case.model_dump())


def test_what_is_kept_of_an_address_has_no_secret():
    assert bare("https://me:pw@a.example/v1?key=s#x") == "https://a.example/v1"
    assert is_loopback("http://[::1]:1/")
    assert is_loopback("http://localhost/")
    assert not is_loopback("http://127.0.0.1.example/")
