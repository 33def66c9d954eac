/**
 * One band: the parts of a request to scale, on the time axis that all rows of the table share.
 * Wait is hatched, inference is solid, a ticket is an outline, and what is left of the round trip is a
 * thin line, so that nothing hangs on colour.
 */

import { el, setText, setVars } from "./dom.js";
import { duration } from "./format.js";
import { t } from "./i18n.js";
import { endOf, fateOf, SIGN } from "./state.js";
import { pieces } from "./timing.js";

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
  if (fate === "killed") return t("note.killed");
  if (fate === "timeout") return t("note.timeout", { after: duration(row.roundTripMs) });
  if (fate === "failed") return row.body?.title || t("note.failed", { status: row.status });
  if (fate === "answered" && row.cache === "hit") return t("note.cached");
  return "";
}

/**
 * Thin lines under the band: when the same review was done at the other doors.
 * @param {HTMLElement} track
 * @param {{door: import("./state.js").Door, row: import("./state.js").Row}[]} ghosts
 */
export function drawGhosts(track, ghosts, scale) {
  for (const old of track.querySelectorAll(".ghost")) old.remove();
  track.dataset.ghosts = String(ghosts.length);
  ghosts.forEach(({ door, row }, k) => {
    const end = endOf(row);
    if (end === null) return;
    const fate = fateOf(row);
    const node = el("span.ghost", { "data-fate": fate, "data-door": door }, el("i", {}, SIGN[door]));
    setVars(node, { width: percent(end, scale), "--k": k });
    track.prepend(node);
  });
}
