"""How levers are spelled, and what is no lever."""

import pytest

from tailrace.simulate.levers import KNOWN, BadLever, Cap, Levers, parse

EVERY = [
    "net=12ms",
    "dedicated",
    "speed=2x",
    "servers=2",
    "door=batched",
    "seats=4",
    "queue-timeout=15s",
    "window=25ms",
    "batch=8",
    "reasoning=off",
    "output-cap=50%",
    "cache=30%",
    "timeout=1500ms",
    "retries=2",
    "rate=2x",
]


def test_every_lever_is_read_in_its_unit():
    assert parse(EVERY) == Levers(
        net_ms=12.0,
        dedicated=True,
        speed=2.0,
        servers=2,
        door="batched",
        seats=4,
        queue_timeout_s=15.0,
        window_s=0.025,
        batch=8,
        reasoning_off=True,
        output_cap=Cap(share=0.5),
        cache=0.3,
        timeout_s=1.5,
        retries=2,
        rate=2.0,
    )


def test_levers_are_said_back_as_they_are_spelled():
    said = parse(EVERY).words()
    assert sorted(said) == sorted(EVERY)
    assert parse(said) == parse(EVERY)


def test_nothing_set_is_nothing_changed():
    assert not parse([])
    assert parse(["seats=0"]).seats == 0
    assert parse(["seats=0"])


def test_an_output_may_be_capped_in_tokens():
    assert parse(["output-cap=200"]).output_cap == Cap(tokens=200)


def test_many_levers_can_be_looked_at_one_by_one():
    assert [levers.words() for levers in parse(["net=12ms", "dedicated", "speed=2x"]).singly()] == [
        ("net=12ms",),
        ("dedicated",),
        ("speed=2x",),
    ]


@pytest.mark.parametrize(
    ("words", "because"),
    [
        (["nett=12ms"], "there is no lever 'nett'"),
        (["net"], "it is spelled net=12ms"),
        (["net=12"], "it is spelled net=12ms"),
        (["net=-3ms"], "it is spelled net=12ms"),
        (["net=nanms"], "it is spelled net=12ms"),
        (["dedicated=yes"], "it is spelled dedicated"),
        (["speed=0x"], "it is spelled speed=2x"),
        (["speed=2"], "it is spelled speed=2x"),
        (["servers=0"], "it is spelled servers=2"),
        (["servers=1.5"], "it is spelled servers=2"),
        (["door=naive"], "it is spelled door=limited|batched|queue"),
        (["seats=-1"], "it is spelled seats=4"),
        (["cache=130%"], "it is spelled cache=30%"),
        (["output-cap=0%"], "it is spelled output-cap=50% or 200"),
        (["reasoning=on"], "it is spelled reasoning=off"),
        (["timeout=0ms"], "it is spelled timeout=1500ms"),
        (["rate=5000x"], "it is spelled rate=2x"),
        (["net=12ms", "net=20ms"], "the lever net is set twice"),
        (["door=limited", "window=25ms"], "door=limited runs work alone"),
        (["door=queue", "batch=8"], "door=queue runs work alone"),
        (["door=queue", "servers=2"], "one by one"),
        (["batch=1", "window=25ms"], "leaves nobody to wait for"),
    ],
)
def test_what_is_no_lever_is_said_in_one_line_with_all_known_ones(words, because):
    with pytest.raises(BadLever) as found:
        parse(words)
    line = str(found.value)
    assert because in line
    assert "\n" not in line
    assert all(name in line for name in KNOWN)
