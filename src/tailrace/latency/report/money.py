"""The cost of a run as a table of plain cells, for the terminal and for reports."""

from tailrace.latency.cost import Cost
from tailrace.latency.report.words import Language

HEADS: dict[Language, tuple[str, ...]] = {
    "en": ("calls a month", "paid by the call", "machines", "resident", "cheaper", "cap"),
    "ko": ("월 호출 수", "호출당 과금", "기계 수", "상주", "더 싼 쪽", "상한"),
}
SAID: dict[Language, dict[str, str]] = {
    "en": {
        "call": "One call costs {price} {currency}.",
        "even": "From {calls} calls a month on, a machine is cheaper.",
        "never": "At these prices a machine is never cheaper.",
        "cap": "The cap of {cap} {currency} a month pays for {calls} calls.",
        "able": "One machine carries {calls} calls a month (busy {ms} ms a call, at most 70 % at the peak).",
        "call_word": "by the call",
        "machine": "machine",
        "within": "within",
        "over": "over",
    },
    "ko": {
        "call": "호출 한 번은 {price} {currency}입니다.",
        "even": "월 {calls}회부터는 상주 기계가 더 쌉니다.",
        "never": "이 가격에서는 상주 기계가 더 싸지지 않습니다.",
        "cap": "월 상한 {cap} {currency}로 {calls}회를 호출할 수 있습니다.",
        "able": "기계 한 대는 월 {calls}회를 감당합니다(호출당 {ms} ms 사용, 최고 시간대에 70 %까지).",
        "call_word": "호출당 과금",
        "machine": "상주",
        "within": "이내",
        "over": "초과",
    },
}


def sentences(found: Cost, language: Language) -> list[str]:
    """What the figures come to."""
    said, money = SAID[language], found.prices.currency
    lines = []
    if found.per_call:
        lines.append(said["call"].format(price=f"{found.per_call:,.4g}", currency=money))
    if found.break_even is not None:
        lines.append(said["even"].format(calls=f"{found.break_even:,.0f}"))
    elif found.per_call and found.prices.machine_month:
        lines.append(said["never"])
    if found.cap_month is not None and found.calls_within_cap is not None:
        cap, calls = f"{found.cap_month:,.0f}", f"{found.calls_within_cap:,.0f}"
        lines.append(said["cap"].format(cap=cap, currency=money, calls=calls))
    if found.calls_month_of_a_machine is not None:
        calls, ms = f"{found.calls_month_of_a_machine:,.0f}", f"{found.busy_ms:,.1f}"
        lines.append(said["able"].format(calls=calls, ms=ms))
    return lines


def cells(found: Cost, language: Language) -> list[list[str]]:
    """The table by traffic."""
    said = SAID[language]
    rows = []
    for line in found.table:
        resident = line.resident if found.prices.machine_month else None
        cheaper = "-"
        if resident is not None and found.per_call:
            cheaper = said["call_word" if line.paid_per_call < resident else "machine"]
        cap = "-" if line.within_cap is None else said["within" if line.within_cap else "over"]
        rows.append(
            [
                f"{line.calls_month:,.0f}",
                f"{line.paid_per_call:,.0f}",
                "-" if line.machines is None else str(line.machines),
                "-" if resident is None else f"{resident:,.0f}",
                cheaper,
                cap,
            ]
        )
    return rows
