"""How the time of one request is divided: what is measured, what is declared, what is left."""

import pytest

from tailrace.latency.exchange import Stamps
from tailrace.latency.partition import UNTOLD, Figure, Knowledge, Marks, partition

MS = 1_000_000


def stamps(**moments: int) -> Stamps:
    """Moments in milliseconds; a request that took a kept connection and was answered whole."""
    whole = {"intended": 0, "taken": 1, "connected": 2, "sent": 3}
    whole |= {"first_byte": 103, "last_byte": 105, "parsed": 106} | moments
    return Stamps(**{name: at * MS for name, at in whole.items()})


def declared(ms: float) -> Figure:
    return Figure(int(ms * MS), "declared")


def ms(stamps_: Stamps, known: Knowledge | None = None) -> dict[str, float]:
    return {name: round(part.ms, 6) for name, part in partition(stamps_, known).parts.items()}


def test_without_knowledge_the_wait_is_left_whole_and_says_so() -> None:
    divided = partition(stamps())
    assert ms(stamps()) == {
        "sched": 1,
        "pool": 1,
        "send": 1,
        "other": 100,
        "transfer": 2,
        "client": 1,
    }
    assert divided.parts["other"].source == "residual"
    assert divided.parts["other"].note == UNTOLD


def test_making_a_connection_is_no_waiting_for_one() -> None:
    made = stamps(dns_start=2, dns=5, tcp=9, tls=20, connected=21, sent=22)
    parts = ms(made)
    assert (parts["dns"], parts["connect"], parts["tls"]) == (3, 4, 11)
    assert parts["pool"] == 2


def test_declared_figures_divide_the_wait_and_leave_the_rest() -> None:
    known = Knowledge(
        floor=Figure(10 * MS, "measured"),
        inside={"queue": declared(60), "infer": declared(25)},
    )
    parts = ms(stamps(), known)
    assert (parts["net"], parts["queue"], parts["infer"], parts["other"]) == (10, 60, 25, 5)


def test_a_rest_below_nothing_is_kept_and_its_likely_cause_is_named() -> None:
    known = Knowledge(inside={"queue": declared(80), "infer": declared(25)}, doubt="averaged")
    divided = partition(stamps(), known)
    assert divided.parts["other"].ms == pytest.approx(-5)
    assert divided.inconsistent == "averaged"


def test_a_rest_within_the_resolution_is_consistent() -> None:
    inside = {"queue": declared(76), "infer": declared(25)}
    assert partition(stamps(), Knowledge(inside=inside, resolution_ns=MS)).inconsistent is None
    assert partition(stamps(), Knowledge(inside=inside)).inconsistent is not None


def test_a_stream_is_divided_at_its_tokens() -> None:
    marks = Marks(203 * MS, 303 * MS, 503 * MS)
    stream = stamps(last_byte=505, parsed=506)
    parts = ms(stream, Knowledge(marks=marks, inside={"queue": declared(150)}))
    assert (parts["queue"], parts["other"]) == (150, 50)
    assert (parts["think"], parts["generate"], parts["transfer"]) == (100, 200, 2)


def test_a_stream_that_only_thought_generated_nothing_visible() -> None:
    marks = Marks(203 * MS, None, 503 * MS)
    parts = ms(stamps(last_byte=505, parsed=506), Knowledge(marks=marks))
    assert (parts["think"], parts["generate"]) == (300, 0)


def test_what_the_stream_shows_beats_what_the_server_says() -> None:
    marks = Marks(203 * MS, 203 * MS, 503 * MS)
    inside = {"generate": declared(280), "prefill": declared(50)}
    divided = partition(stamps(last_byte=505, parsed=506), Knowledge(marks=marks, inside=inside))
    assert divided.parts["generate"].source == "measured"
    assert divided.parts["generate"].ms == pytest.approx(300)
    assert divided.parts["prefill"].source == "declared"


def test_thinking_that_nobody_sees_is_a_share_of_the_wait() -> None:
    marks = Marks(203 * MS, 203 * MS, 503 * MS)
    hidden = Figure(120 * MS, "estimated", 110 * MS, 130 * MS)
    divided = partition(
        stamps(last_byte=505, parsed=506), Knowledge(marks=marks, inside={"think": hidden})
    )
    think = divided.parts["think"]
    assert (think.source, think.ms) == ("estimated", pytest.approx(120))
    assert (think.low, think.high) == (pytest.approx(110), pytest.approx(130))


@pytest.mark.parametrize(
    ("reached", "open_part"),
    [
        ({}, "pool"),
        ({"dns_start": 2}, "dns"),
        ({"dns_start": 2, "dns": 3}, "connect"),
        ({"dns_start": 2, "dns": 3, "tcp": 4}, "tls"),
        ({"connected": 5}, "send"),
    ],
)
def test_who_is_cut_off_on_the_way_sees_where(reached: dict[str, int], open_part: str) -> None:
    moments = {"intended": 0, "taken": 1, **reached, "ended": 500}
    divided = partition(Stamps(**{name: at * MS for name, at in moments.items()}))
    assert divided.parts[open_part].note == "cut off"
    assert max(divided.parts, key=lambda name: divided.parts[name].ms) == open_part
    assert sum(part.ms for part in divided.parts.values()) == pytest.approx(500)


def test_who_is_cut_off_while_waiting_has_waited_for_no_answer() -> None:
    cut = Stamps(0, MS, connected=2 * MS, sent=3 * MS, ended=1503 * MS)
    other = partition(cut).parts["other"]
    assert (other.ms, other.note) == (pytest.approx(1500), "no answer came")


def test_a_request_that_has_not_ended_has_no_parts() -> None:
    with pytest.raises(ValueError, match="not ended"):
        partition(Stamps(0, 1))


def cut(**moments: int) -> Stamps:
    """A request whose answer broke off at 180 ms."""
    made = stamps(ended=180, **moments)
    made.last_byte = made.parsed = None
    return made


def at(first: int, visible: int | None, last: int) -> Knowledge:
    shown = None if visible is None else visible * MS
    return Knowledge(marks=Marks(first * MS, shown, last * MS))


def test_a_stream_that_breaks_off_is_cut_off_in_what_it_was_doing() -> None:
    """Who waits for the next token when the stream ends has waited for generation, not for a transfer."""
    divided = partition(cut(), at(113, 133, 153))
    spans = {name: round(part.ms) for name, part in divided.parts.items()}
    assert (spans["other"], spans["think"], spans["generate"]) == (110, 20, 47)
    assert divided.parts["generate"].note == "cut off"
    assert divided.parts["think"].note is None
    assert not {"transfer", "client"} & spans.keys()
    assert sum(part.ms for part in divided.parts.values()) == pytest.approx(180)


def test_a_stream_that_breaks_off_in_its_thoughts_has_generated_nothing() -> None:
    divided = partition(cut(), at(113, None, 153))
    assert divided.parts["think"].note == "cut off"
    assert divided.parts["think"].ms == pytest.approx(67)
    assert not {"generate", "transfer", "client"} & divided.parts.keys()


def test_an_answer_that_breaks_off_is_cut_off_in_its_transfer() -> None:
    divided = partition(cut())
    assert divided.parts["transfer"].note == "cut off"
    assert divided.parts["transfer"].ms == pytest.approx(77)
    assert "client" not in divided.parts
