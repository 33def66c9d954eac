/** Where the time of an answer went: a bar of its parts that adds up to the whole, and the same in words. */

import { el, setVars } from "./shared/dom.js";
import { duration } from "./shared/format.js";
import { knows, t } from "./shared/i18n.js";

/** Which kind a part is drawn as. @type {Record<string, string>} */
const KINDS = {
  wait: "wait", "embed-wait": "wait", batch: "wait", input: "wait",
  tokenize: "model", embed: "model", infer: "model", rerank: "model", spec: "model", generation: "model",
  detect: "model", recognise: "model", "first-byte": "wait", match: "store",
  keyword: "store", vector: "store", fuse: "store", fetch: "store", search: "store",
};

const name = (part) => (knows(`part.${part}`) ? t(`part.${part}`) : part);

/**
 * @param {Record<string, number>} parts  milliseconds, in the order in which they happened
 * @param {number|null} total  what the server says they come to
 * @param {{roundTripMs?: number, open?: boolean, onToggle?: (open: boolean) => void}} [more]
 */
export function partsBar(parts, total, more = {}) {
  const whole = total ?? Object.values(parts).reduce((sum, ms) => sum + ms, 0);
  const pieces = Object.entries(parts).filter(([, ms]) => ms > 0);
  const bar = el("span.parts-bar", { "aria-hidden": "true" });
  for (const [part, ms] of pieces) {
    const piece = el(`span.part.${KINDS[part] || "rest"}`, { "data-part": part, "data-ms": ms });
    setVars(piece, { "flex-grow": whole ? ms / whole : 0 });
    bar.append(piece);
  }
  const rows = pieces.map(([part, ms]) => el("tr", {},
    el("td", {}, el(`span.key.${KINDS[part] || "rest"}`, { "aria-hidden": "true" })),
    el("th", { scope: "row" }, name(part)),
    el("td.num", {}, duration(ms))));
  const sum = el("tr.sum", {}, el("td"), el("th", { scope: "row" }, t("part.total")), el("td.num", {}, duration(whole)));
  const beyond = more.roundTripMs === undefined ? null
    : el("p.muted", {}, t("part.beyond", { ms: duration(Math.max(0, more.roundTripMs - whole)), all: duration(more.roundTripMs) }));
  const details = /** @type {HTMLDetailsElement} */ (el("details.parts", { open: more.open },
    el("summary", {}, bar, el("span.parts-total", {}, t("part.took", { ms: duration(whole) }))),
    el("table", {}, el("caption.vh", {}, t("part.caption")), el("tbody", {}, ...rows, sum)),
    beyond));
  details.addEventListener("toggle", () => more.onToggle?.(details.open));
  return details;
}
