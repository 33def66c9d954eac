/**
 * The table of one run: a row for each request, its band, its numbers, and the detail that opens under
 * it. Up to sixty rows in the page; numbers are text, so the table says everything without the bands.
 */

import { curlOf } from "./api.js";
import { drawBand, drawGhosts, makeTrack } from "./band.js";
import { copy } from "./shared/copy.js";
import { guests } from "./crowd.js";
import { makeDetail } from "./detail.js";
import { $, el, setText, setVars } from "./shared/dom.js";
import { count, mark, ms, score } from "./shared/format.js";
import { t } from "./shared/i18n.js";
import { DOORS, endOf, fateOf, inferOf, newRow, on, state, tell, topicsOf, waitOf } from "./state.js";
import { topicName } from "./topics.js";

/** @type {Map<number, {tr: HTMLElement, cells: Record<string, HTMLElement>, track: HTMLElement}>} */
const rows = new Map();
let shownRun = null;
let frame = 0;
let scale = 1000;

export function startTable() {
  on("run", (run) => { if (run) show(run); });
  on("row", ({ run, row }) => { if (run === state.run) drawRow(row); });
  on("choice", redraw);
  on("model", redraw);
  redraw();
}

/** Build or rebuild everything, after a new run or in a new language. */
export function redraw() {
  show(state.run || preview(), true);
}

/** Before anybody is sent: the guests at the door, so that the table never stands empty. */
function preview() {
  return { door: state.door, phase: "preview", crowd: "", clock: guests().length === 1 ? "browser" : "box",
    t0: performance.now(), rows: guests().map((text, i) => newRow(i, text)) };
}

function show(run, anew = false) {
  if (run !== shownRun || anew) {
    shownRun = run;
    rows.clear();
    $("rows").replaceChildren(...run.rows.map(makeRow));
    $("table-empty").hidden = run.rows.length > 0;
    $("table-wrap").hidden = run.rows.length === 0;
    $("table").dataset.phase = run.phase;
  }
  setText($("rt-clock"), t(run.clock === "box" ? "by.box" : "by.browser"));
  $("table").dataset.phase = run.phase;
  if (run.phase !== "running") for (const row of run.rows) if (row.phase !== "done") drawRow(row);
  cancelAnimationFrame(frame);
  tick();
}

function makeRow(row) {
  const cells = {};
  const label = (key) => ({ role: "cell", "data-label": t(key) });
  const open = el("button.review", {
    type: "button", "aria-expanded": String(state.open.has(row.i)), on: { click: () => toggle(row) },
  }, el("span", {}, row.text));
  cells.open = open;
  const track = makeTrack();
  const tr = el("tr", { role: "row", "data-i": row.i },
    el("td.no", { role: "cell" }, String(row.i + 1)),
    el("td.text", { role: "cell" }, open),
    (cells.answer = el("td.answer", { role: "cell" })),
    el("td.band", { role: "cell" }, track),
    (cells.wait = el("td.num", label("col.wait"))),
    (cells.infer = el("td.num", label("col.infer"))),
    (cells.rt = el("td.num.rt", label("col.rt"))),
    (cells.topic = el("td.topic", label("col.topic"))),
    el("td.act", { role: "cell" }, el("button.small", {
      type: "button", "aria-label": t("curl.copy", { no: row.i + 1 }),
      on: { click: () => { if (!state.open.has(row.i)) toggle(row); copy(curlOf(shownRun.door, row.text)); } },
    }, "curl")));
  rows.set(row.i, { tr, cells, track });
  drawRow(row);
  const parts = [tr];
  if (state.open.has(row.i)) parts.push(detailRow(row));
  const fragment = document.createDocumentFragment();
  fragment.append(...parts);
  return fragment;
}

function toggle(row) {
  const { tr, cells } = rows.get(row.i) || {};
  if (!tr || !cells) return;
  if (state.open.delete(row.i)) tr.nextElementSibling?.remove();
  else {
    state.open.add(row.i);
    tr.after(detailRow(row));
  }
  cells.open.setAttribute("aria-expanded", String(state.open.has(row.i)));
}

function detailRow(row) {
  return el("tr.detail-row", { role: "row" },
    el("td", { role: "cell", colspan: 9 }, makeDetail(shownRun, row)));
}

function drawRow(row) {
  const entry = rows.get(row.i);
  if (!entry) return;
  const { cells, tr } = entry;
  const fate = fateOf(row);
  tr.dataset.fate = fate;
  cells.answer.replaceChildren(badge(row, fate));
  setText(cells.wait, ms(waitOf(row)));
  setText(cells.infer, ms(inferOf(row)));
  cells.rt.replaceChildren(ms(row.roundTripMs));
  if (row.ticket?.ms) {
    cells.rt.append(el("small.until", { title: t("ticket.life") }, `→ ${ms(row.ticket.ms)}`));
  }
  const top = topicsOf(row)?.[0];
  cells.topic.replaceChildren();
  if (top) {
    const weak = state.model && top.score < state.model.weak_below;
    cells.topic.append(el("span.name", {}, topicName(top)),
      el("span.score", { "data-weak": weak }, weak ? t("weak.score", { score: score(top.score) }) : score(top.score)));
  } else cells.topic.append("–");
  if (state.open.has(row.i) && row.phase === "done") {
    tr.nextElementSibling?.replaceWith(detailRow(row));
  }
}

function badge(row, fate) {
  if (shownRun.phase === "preview") return el("span.badge.sent", {}, "–");
  const cut = shownRun.phase !== "running" && (fate === "sent" || fate === "ticket");
  if (cut) return el("span.badge.sent", {}, t("badge.cut"));
  if (fate === "sent") return el("span.badge.sent", {}, t("badge.sent"));
  if (fate === "ticket") {
    return el("span.badge.ticket", {}, t("badge.ticket", { position: count((row.ticket.position ?? 0) + 1) }));
  }
  const text = row.ticket && fate === "answered" ? t("badge.redeemed") : row.status ? String(row.status) : t("badge.cut");
  const node = el(`span.badge.${fate}`, {}, text);
  if (row.batchSize > 1) return el("span", {}, node, el("small.batch", { title: "X-Batch-Size" }, `×${row.batchSize}`));
  return node;
}

/** Runs of the same crowd at other doors, oldest first. */
export function ghostRuns() {
  const run = state.run;
  if (!run || !state.ghosts) return [];
  return DOORS.map((d) => state.runs[d])
    .filter((r) => r && r !== run && r.crowd === run.crowd && r.phase !== "running");
}

const ends = (run) => run.rows.map(endOf).filter((e) => e !== null);

function tick() {
  const run = shownRun;
  const elapsed = performance.now() - run.t0;
  const ghosts = ghostRuns();
  const known = Math.max(1, ...ends(run), ...ghosts.flatMap(ends));
  const running = run.phase === "running";
  if (!running) scale = known;
  else if (elapsed < 200) scale = Math.max(known, 600);
  else scale = Math.max(known, elapsed > scale ? elapsed * 1.3 : scale);
  drawAxis();
  const width = rows.values().next().value?.track.clientWidth || 1;
  for (const row of run.rows) {
    const entry = rows.get(row.i);
    if (!entry) continue;
    drawBand(entry.track, row, scale, running ? elapsed : scale);
    if (!running || entry.track.dataset.scale !== String(scale)) {
      drawGhosts(entry.track, ghosts.map((g) => ({ door: g.door, row: g.rows[row.i] })), scale, width);
      entry.track.dataset.scale = String(scale);
    }
  }
  tell("drawn");
  if (!running) return;
  const calm = state.paused || matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (calm) setTimeout(() => { frame = requestAnimationFrame(tick); }, state.paused ? 1000 : 500);
  else frame = requestAnimationFrame(tick);
}

function drawAxis() {
  const step = niceStep(scale);
  const axis = $("axis");
  if (shownRun.phase === "preview") { axis.replaceChildren(); axis.dataset.key = ""; return; }
  const key = `${scale.toFixed(1)} ${document.documentElement.lang}`;
  if (axis.dataset.key === key) return;
  axis.dataset.key = key;
  const marks = [];
  for (let at = step; at <= scale * 0.999; at += step) {
    const label = el("span", {}, mark(at));
    setVars(label, { left: `${((at / scale) * 100).toFixed(3)}%` });
    if (at / scale > 0.93) label.className = "end";
    marks.push(label);
  }
  axis.replaceChildren(...marks);
  setVars($("table"), { "--tick": `${((step / scale) * 100).toFixed(4)}%` });
}

function niceStep(total) {
  const rough = total / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough) || rough;
}
