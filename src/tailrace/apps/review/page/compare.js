/** The four doors side by side, in numbers, for the crowd on the page. */

import { $, el, setText } from "./shared/dom.js";
import { bytes, count, duration } from "./shared/format.js";
import { t } from "./shared/i18n.js";
import { DOORS, on, SIGN, state } from "./state.js";
import { summarise } from "./summary.js";

export function startCompare() {
  on("run", drawCompare);
}

export function drawCompare() {
  const runs = DOORS.map((d) => state.runs[d]).filter((r) => r && r.phase !== "running");
  $("compare").hidden = runs.length < 2;
  if (runs.length < 2) return;
  setText($("compare-note"), t("compare.note", { n: runs[0].rows.length }));
  $("compare-rows").replaceChildren(...runs.map((run) => line(run)));
}

function line(run) {
  const s = summarise(run);
  const zero = (value, kind) => el("td.num", { "data-zero": value === 0, "data-kind": kind }, count(value));
  return el("tr", { "data-door": run.door },
    el("th", { scope: "row" }, el("span.sign", {}, SIGN[run.door]), " ", t(`door.${run.door}`)),
    zero(s.answered), zero(s.refused + s.timeout, "bad"), zero(s.killed + s.failed, "bad"),
    el("td.num", {}, duration(s.firstMs)), el("td.num", {}, duration(s.p50Ms)), el("td.num", {}, duration(s.worstMs)),
    el("td.num", {}, duration(s.longestWaitMs)),
    el("td.num", {}, s.batch ? `×${s.batch}` : "–"),
    el("td.num", {}, s.rssPeak ? bytes(s.rssPeak) : "–"));
}
