/**
 * One band: the parts of a request to scale, on the time axis that all rows of the table share.
 * Wait is hatched, inference is solid, a ticket is an outline, and what is left of the round trip is a
 * thin line, so that nothing hangs on colour.
 */

import { el, setText, setVars } from "./shared/dom.js";
import { duration } from "./shared/format.js";
import { t } from "./shared/i18n.js";
import { endOf, fateOf, SIGN, state } from "./state.js";
import { pieces } from "./shared/timing.js";

const percent = (part, scale) => `${((part / scale) * 100).toFixed(4)}%`;

/** An empty track for one row. */
export function makeTrack() {
  return el("div.track", {},
    el("span.whisker"), el("span.seg.ticket"), el("span.seg.wait"), el("span.seg.infer"), el("span.note"));
}

/**
 * Where the drawn parts of a row lie, in milliseconds after it was sent.
 * @param {import("./state.js").Row} row
 * @returns {Partial<Record<"ticket"|"wait"|"infer", {from: number, length: number}>>}
 */
export function segments(row) {
  if (row.ticket) {
    const { waitedMs, inferenceMs } = row.ticket;
    if (waitedMs === null || inferenceMs === null) return {};
    const from = row.roundTripMs || 0;
    return { ticket: { from, length: waitedMs }, infer: { from: from + waitedMs, length: inferenceMs } };
  }
  /** @type {any} */
  const found = {};
  for (const piece of pieces(row.parts)) {
    if (piece.kind !== "rest") found[piece.kind] = { from: piece.from, length: piece.length };
  }
  return found;
}

/**
 * Draw a row to a scale.
 * @param {HTMLElement} track
 * @param {import("./state.js").Row} row
 * @param {number} scale milliseconds that the whole track stands for
 * @param {number} elapsed milliseconds since the run began, for a row that is still under way
 */
export function drawBand(track, row, scale, elapsed) {
  const fate = fateOf(row);
  const end = endOf(row) ?? elapsed;
  const parts = segments(row);
  track.dataset.fate = fate;
  for (const kind of ["ticket", "wait", "infer"]) {
    const node = /** @type {HTMLElement} */ (track.querySelector(`.seg.${kind}`));
    const part = parts[kind];
    node.hidden = !part || part.length <= 0;
    if (part) setVars(node, { left: percent(part.from, scale), width: percent(part.length, scale) });
  }
  const whisker = /** @type {HTMLElement} */ (track.querySelector(".whisker"));
  setVars(whisker, { width: percent(end, scale) });
  const note = /** @type {HTMLElement} */ (track.querySelector(".note"));
  setText(note, noteOf(row, fate));
  const shown = fate === "killed" || fate === "timeout" ? Math.min(end / scale, 0.4) : 0;
  setVars(note, { left: percent(shown, 1) });
}

function noteOf(row, fate) {
  if (fate === "refused") {
    return row.retryAfterS === null ? t("note.refused.plain")
      : t("note.refused", { retry: t("unit.s", { n: row.retryAfterS }) });
  }
  if (fate === "killed") {
    if (row.body?.code === "model-restarting") return t("note.restarting");
    return t(state.stats?.naive?.killed_because === "limit" ? "note.killed" : "note.died");
  }
  if (fate === "timeout") return t("note.timeout", { after: duration(row.roundTripMs) });
  if (fate === "failed" && row.ticket) return row.status === 404 ? t("note.lost") : t("note.ticket.failed");
  if (fate === "failed" && !row.status) return t("note.cut");
  if (fate === "failed") return row.body?.title ? `${row.status} · ${row.body.title}` : t("note.failed", { status: row.status });
  if (fate === "answered" && row.cache === "hit") return t("note.cached");
  if (fate === "ticket") {
    return row.ticket.etaS === null ? "" : t("note.ticket", { eta: duration(row.ticket.etaS * 1000) });
  }
  return "";
}

/** How far apart two signs on the ghost line have to be, in pixels, to be read. */
const SIGN_WIDTH = 17;

/**
 * One thin line under the band with the signs of the other doors, each where it was done with the same
 * review. A cross follows the sign of a door that gave no answer.
 * @param {HTMLElement} track
 * @param {{door: import("./state.js").Door, row: import("./state.js").Row}[]} ghosts
 * @param {number} width of the track in pixels
 */
export function drawGhosts(track, ghosts, scale, width) {
  for (const old of track.querySelectorAll(".ghost")) old.remove();
  track.dataset.ghosts = String(ghosts.length);
  const ends = ghosts.map((g) => ({ ...g, end: endOf(g.row), fate: fateOf(g.row) }))
    .filter((g) => g.end !== null).sort((a, b) => Number(a.end) - Number(b.end));
  let free = 0;
  const places = ends.map((g) => {
    const at = Math.max(free, (Number(g.end) / scale) * width);
    free = at + SIGN_WIDTH + (g.fate === "answered" ? 0 : 9);
    return at;
  });
  const over = Math.max(0, free - width);
  ends.forEach((g, k) => {
    const lost = g.fate !== "answered";
    const sign = el("span.ghost.sign-at", { "data-lost": lost, "data-door": g.door }, `${SIGN[g.door]}${lost ? "✕" : ""}`);
    setVars(sign, { left: `${(places[k] - Math.min(over, places[k])).toFixed(1)}px` });
    const line = el("span.ghost.until-at", { "data-lost": lost });
    setVars(line, { width: percent(g.end, scale) });
    track.append(line, sign);
  });
}
