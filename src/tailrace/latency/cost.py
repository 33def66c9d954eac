"""What calls cost: a price per call or token against a machine that is there anyway, from one run.

Tokens per call and the time a call keeps the model busy are the run's own; prices are the reader's. Knows no
provider's price list.
"""

import math
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tailrace.latency.runs import Run
from tailrace.latency.sample import BadSample, sample

MONTH_S = 30 * 24 * 3600
BUSY = ("tokenize", "prefill", "infer", "think", "generate")
"""Parts in which a call keeps the model busy."""
USE = 0.7
"""How busy a machine is planned to be at its peak: beyond it the line grows faster than the traffic."""
PEAK = 3.0
"""The busiest hour against the mean, where nothing else is known."""
TRAFFIC = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
"""Calls a month that a table shows."""


class BadCost(ValueError):
    """The run and the prices give no cost: why, in one sentence."""


class Prices(BaseModel):
    """Prices in one currency."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    currency: str = "KRW"
    per_call: float = Field(0.0, ge=0)
    per_mtok_in: float = Field(0.0, ge=0)
    """For a million input tokens."""
    per_mtok_out: float = Field(0.0, ge=0)
    """For a million output tokens, thoughts included."""
    machine_month: float = Field(0.0, ge=0)
    """One resident machine for a month; 0 where it is there anyway."""
    cap: float | None = Field(None, gt=0)
    """What may be spent in `cap_months`: the seed's 360,000 in three."""
    cap_months: float = Field(3.0, gt=0)
    peak: float = Field(PEAK, ge=1)
    """The busiest hour against the mean of the month."""

    @model_validator(mode="after")
    def _asks_something(self) -> "Prices":
        if not (self.per_call or self.per_mtok_in or self.per_mtok_out or self.machine_month):
            raise ValueError("name a price: per call, per million tokens, or a machine's per month")
        return self


@dataclass(frozen=True, slots=True)
class Traffic:
    """One line of the table."""

    calls_month: float
    paid_per_call: float
    machines: int | None
    """How many are needed at the peak; None where the run does not tell how long one is busy."""
    resident: float | None
    within_cap: bool | None
    """Whether paying per call stays below the monthly cap; None without one."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run says about money."""

    prices: Prices
    per_call: float
    tokens_in: float | None
    tokens_out: float | None
    busy_ms: float | None
    """Mean time that a call keeps the model busy."""
    calls_month_of_a_machine: float | None
    """At its planned use, with the month's peak."""
    break_even: float | None
    """Calls a month from which a machine is cheaper; None where it never is, or has no price."""
    cap_month: float | None
    calls_within_cap: float | None
    """Calls a month that the cap pays for."""
    table: tuple[Traffic, ...]


def cost(run: Run, prices: Prices) -> Cost:
    """The cost of the calls of a run; raises BadCost."""
    try:
        found = sample(run.rows)
    except BadSample as bad:
        raise BadCost(str(bad)) from None
    tokens_in, tokens_out = (
        _mean([row.detail.get(name) for row in found.rows])
        for name in ("input_tokens", "output_tokens")
    )
    for price, tokens, what in (
        (prices.per_mtok_in, tokens_in, "input"),
        (prices.per_mtok_out, tokens_out, "output"),
    ):
        if price and tokens is None:
            raise BadCost(f"the run's answers tell no {what} tokens: give a price per call instead")
    per_call = prices.per_call
    per_call += prices.per_mtok_in * (tokens_in or 0.0) / 1e6
    per_call += prices.per_mtok_out * (tokens_out or 0.0) / 1e6
    busy = _busy_ms(run)
    able = None if not busy else MONTH_S * USE / prices.peak / (busy / 1000)
    cap_month = None if prices.cap is None else prices.cap / prices.cap_months
    return Cost(
        prices=prices,
        per_call=per_call,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        busy_ms=busy,
        calls_month_of_a_machine=able,
        break_even=_break_even(per_call, prices.machine_month, able),
        cap_month=cap_month,
        calls_within_cap=cap_month / per_call if cap_month and per_call else None,
        table=tuple(_line(calls, per_call, prices, able, cap_month) for calls in TRAFFIC),
    )


def _line(
    calls: float, per_call: float, prices: Prices, able: float | None, cap_month: float | None
) -> Traffic:
    machines = None if able is None else max(1, math.ceil(calls / able))
    return Traffic(
        calls_month=calls,
        paid_per_call=calls * per_call,
        machines=machines,
        resident=None if machines is None else machines * prices.machine_month,
        within_cap=None if cap_month is None else calls * per_call <= cap_month,
    )


def _break_even(per_call: float, machine: float, able: float | None) -> float | None:
    """The first point; further machines come in steps, and a machine that is dear by the call never pays."""
    if not per_call or not machine:
        return None
    calls = machine / per_call
    if able is None or calls <= able:
        return calls
    return None if machine / able >= per_call else calls


def _busy_ms(run: Run) -> float | None:
    """Of the rows that tell it; what a shared batch costs is shared by those in it."""
    times = []
    for row in run.rows:
        told = [row.parts[name].ms for name in BUSY if name in row.parts]
        if row.phase == "steady" and row.outcome == "ok" and told:
            times.append(sum(told) / max(1, int(row.detail.get("server_batch", 1))))
    return sum(times) / len(times) if times else None


def _mean(values: list[object]) -> float | None:
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    return sum(numbers) / len(numbers) if numbers else None
