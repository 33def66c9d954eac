/**
 * The four doors: a switch (real radio buttons) whose cards also carry what the last run through each
 * door looked like: the curve of answers over time, on one axis for all four, and what it gave up.
 */

import { doorPath } from "./api.js";
import { $, el, setText, svg } from "./shared/dom.js";
import { duration } from "./shared/format.js";
import { t } from "./shared/i18n.js";
import { busy, DOORS, endOf, fateOf, on, SIGN, state, tell } from "./state.js";
import { steps, summarise } from "./summary.js";
import { verdict } from "./verdict.js";

const WIDTH = 240;
const HEIGHT = 46;
/** Room on the axis after the last end, so that a death can be seen. */
const AFTER_DEATH = 1.15;
/** @type {Record<string, Record<string, any>>} */
const cards = {};
let later = 0;

export function startDoors() {
  $("doors").append(...DOORS.map(makeCard));
  on("choice", drawDoors);
  on("run", drawDoors);
  on("drawn", () => {
    if (busy() && !later) later = setTimeout(() => { later = 0; drawDoors(); }, 120);
  });
  drawDoors();
}

function makeCard(door) {
  const input = el("input", {
    type: "radio", name: "door", value: door, id: `door-${door}`, "aria-describedby": `gave-${door}`,
    on: { change: () => { state.door = door; showRunOf(door); tell("choice"); } },
  });
  const card = { input };
  const label = el("label.door", { for: `door-${door}`, "data-door": door }, input,
    el("span.head", {}, el("span.sign", { "aria-hidden": "true" }, SIGN[door]), (card.name = el("span.name"))),
    el("code.path", {}, `/${doorPath(door).slice(4)}`),
    (card.plot = el("span.plot", { "aria-hidden": "true" })),
    (card.gave = el("span.gave", { id: `gave-${door}` })));
  cards[door] = card;
  return label;
}

/** Choosing a door that this crowd has already gone through shows that run again. */
function showRunOf(door) {
  const run = state.runs[door];
  if (!run || busy()) return;
  state.run = run;
  state.open.clear();
  tell("run", run);
}

export function drawDoors() {
  const runs = DOORS.map((d) => state.runs[d]).filter(Boolean);
  const span = Math.max(1, ...runs.flatMap((r) => [
    r.phase === "running" ? performance.now() - r.t0 : 0, ...r.rows.map((row) => endOf(row) ?? 0)]));
  const axis = runs.some((r) => r.rows.some((row) => fateOf(row) === "killed")) ? span * AFTER_DEATH : span;
  for (const door of DOORS) {
    const card = cards[door];
    const run = state.runs[door];
    card.input.checked = state.door === door;
    setText(card.name, t(`door.${door}`));
    const running = run?.phase === "running";
    card.input.parentElement.dataset.phase = run ? run.phase : "none";
    if (!run) setText(card.gave, t(`door.${door}.gives`));
    else if (running) setText(card.gave, progress(run));
    else setText(card.gave, verdict(run));
    if (run) card.plot.replaceChildren(curve(run, axis), ...marks(run, axis));
    else card.plot.replaceChildren(el("span.idea", {}, t(`door.${door}.how`)));
  }
}

function progress(run) {
  const s = summarise(run);
  return t("run.progress", { done: s.n - s.pending, n: s.n });
}

/** Answers over time as steps; the red ground above it is the share that was sent away or lost. */
function curve(run, span) {
  const n = run.rows.length;
  const x = (ms) => ((ms / span) * WIDTH).toFixed(1);
  const y = (k) => (HEIGHT - (k / n) * HEIGHT).toFixed(1);
  const at = steps(run);
  let path = `M0 ${HEIGHT}`;
  at.forEach((ms, k) => { path += `H${x(ms)}V${y(k + 1)}`; });
  const end = run.phase === "running" ? path : `${path}H${WIDTH}`;
  const lost = run.rows.filter((r) => ["refused", "killed", "timeout", "failed"].includes(fateOf(r)));
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", focusable: "false" });
  if (lost.length) {
    const from = Math.min(...lost.map((r) => endOf(r) ?? 0));
    picture.append(svg("rect.lost", {
      x: x(from), y: 0, width: Math.max(0, WIDTH - Number(x(from))), height: ((lost.length / n) * HEIGHT).toFixed(1),
    }));
  }
  picture.append(svg("path.area", { d: `${end}V${HEIGHT}Z` }), svg("path.line", { d: end }));
  return picture;
}

function marks(run, span) {
  const s = summarise(run);
  const lost = s.refused + s.killed + s.timeout + s.failed;
  return [
    el("span.scale", {}, duration(span)),
    el("span.tally", {}, t("tally", { answered: s.answered, n: s.n })),
    lost ? el("span.tally.lost", {}, t(s.killed ? "tally.killed" : "tally.refused", { lost })) : "",
  ];
}
