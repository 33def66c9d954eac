"""How reports look: one style sheet for light and dark, and a colour for every part."""

COLOURS = {
    "net": "#4464ad",
    "queue": "#c8553d",
    "prefill": "#7a9e7e",
    "tokenize": "#a9c5a0",
    "infer": "#7a9e7e",
    "think": "#8e6c8a",
    "generate": "#e0a458",
    "transfer": "#90a4ae",
    "client": "#b0bec5",
    "sched": "#cfd8dc",
    "pool": "#6d9dc5",
    "dns": "#80ded9",
    "connect": "#53917e",
    "tls": "#63535b",
    "send": "#aec3b0",
    "other": "#9aa0a6",
}
STYLE = """
:root { --ink: #1d2733; --soft: #5b6775; --line: #d9dee4; --paper: #ffffff; --back: #f5f6f8;
  --mark: #3457b1; --good: #1f6b49; --bad: #a83a24 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ee; --soft: #a3adb9; --line: #37404b; --paper: #1b2129; --back: #12161c;
    --mark: #8fb0ff; --good: #6fcf97; --bad: #ff8a70 }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--back); color: var(--ink);
  font: 16px/1.6 system-ui, "Noto Sans KR", "Noto Sans CJK KR", sans-serif; word-break: keep-all }
main { max-width: 64rem; margin: 0 auto; padding: 1.5rem 1rem 4rem }
h1 { font-size: 1.8rem; line-height: 1.25; margin: 1rem 0 .5rem } h2 { font-size: 1.2rem; margin: 0 0 .5rem }
section { background: var(--paper); border: 1px solid var(--line); border-radius: .6rem;
  padding: 1rem 1.2rem; margin: 1rem 0 }
p { margin: .4rem 0 } .soft { color: var(--soft); font-size: .9rem }
.say { font-size: 1.15rem; font-weight: 600 }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .92rem }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap }
th:first-child, td:first-child { text-align: left } th { color: var(--soft); font-weight: 600 }
[data-part=parts] tr:last-child td { font-weight: 600 }
.good { color: var(--good) } .bad { color: var(--bad); font-weight: 600 }
.wide { overflow-x: auto }
svg { width: 100%; height: auto; display: block } svg text { fill: var(--ink); font-size: 13px }
svg .faint { fill: var(--soft); font-size: 12px } svg .rule { stroke: var(--line) }
svg .line { stroke: var(--mark); fill: none; stroke-width: 2 } svg .dot { fill: var(--mark); opacity: .35 }
@media (max-width: 52rem) {
  section { padding: .8rem } th, td { padding: .3rem .4rem }
  th { white-space: normal; vertical-align: bottom }
}
@media (max-width: 40rem) { th { white-space: nowrap } .wide svg { min-width: 44rem } }
.keys { display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .9rem; margin-top: .4rem }
.keys i { display: inline-block; width: .8rem; height: .8rem; border-radius: .2rem; margin-right: .3rem }
fieldset { border: 0; padding: 0; margin: 0; float: right } legend { position: absolute; left: -99rem }
fieldset label { margin-left: .6rem; cursor: pointer }
body:has(#ko:checked) .en, body:has(#en:checked) .ko { display: none }
"""


def wide(inside: str) -> str:
    """What may be wider than a small screen: it is moved in a frame of its own, by the keyboard too."""
    return f'<div class="wide" tabindex="0">{inside}</div>'


def colour(part: str) -> str:
    """The colour of a part; one that is not ours is grey."""
    return COLOURS.get(part, "#9aa0a6")
