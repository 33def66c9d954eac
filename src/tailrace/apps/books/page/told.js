/** What the answer says of itself: how many, in which mode, how long; or that it was refused, and until when. */

import { asked, SIZE } from "./asked.js";
import { partsBar } from "./parts.js";
import { degradedText, problemText } from "./problem.js";
import { search, seen } from "./search.js";
import { $, el, setText } from "./shared/dom.js";
import { count } from "./shared/format.js";
import { t } from "./shared/i18n.js";
import { say } from "./shared/announce.js";
import { countdown } from "./countdown.js";

let partsOpen = false;
let stopCounting = () => {};

export function startTold() {
  $("before").addEventListener("click", () => turn(-1));
  $("after").addEventListener("click", () => turn(1));
}

const pagesOf = (body) => Math.max(1, Math.ceil(body.total / SIZE));

/** Another page of the same search. */
export function turn(step) {
  const body = seen.answer?.body;
  if (!body || (step > 0 ? !body.next : body.page <= 1)) return;
  asked.page = Math.min(body.page + step, pagesOf(body));  // back from beyond the end is to the end
  search();
  $("results").focus({ preventScroll: true });
  $("results").scrollIntoView({ block: "start" });
}

export function drawTold() {
  drawNotice();
  const answer = seen.answer;
  $("told").hidden = !answer;
  $("pager").hidden = !answer || (answer.body.page === 1 && !answer.body.next);
  if (!answer) return;
  const body = answer.body;
  setText($("count"), countText(body));
  drawMode(body);
  $("parts").replaceChildren(partsBar(answer.timing.parts, answer.timing.total, {
    roundTripMs: answer.roundTripMs, open: partsOpen, onToggle: (open) => { partsOpen = open; },
  }));
  $("before").disabled = body.page <= 1;
  $("after").disabled = !body.next;
  setText($("place"), t("pager.place", { page: count(body.page), pages: count(pagesOf(body)) }));
  if (seen.phase === "answered") say([countText(body), ...body.degraded.map(degradedText)].join(" "));
}

function countText(body) {
  if (!body.total) return t("count.none");
  if (!body.hits.length) return t("count.beyond", { n: count(body.total) });
  return t(body.total < body.fusion.window ? "count" : "count.window", { n: count(body.total) });
}

function drawMode(body) {
  const lessened = body.degraded.length > 0;
  const mode = t(`mode.${body.mode}`);
  setText($("mode"), lessened ? t("mode.degraded", { mode }) : mode);
  $("mode").dataset.mode = lessened ? "degraded" : body.mode;
  const notes = body.degraded.map((code) => el("span", { "data-code": code }, degradedText(code)));
  if (!body.exact) notes.push(el("span", {}, t("note.inexact")));
  if (body.short) notes.push(el("span", {}, t("note.short")));
  $("why").replaceChildren(...notes);
  $("why").hidden = !notes.length;
  $("why").dataset.lessened = String(lessened);
}

function drawNotice() {
  const { phase, refusal } = seen;
  const node = $("notice");
  stopCounting();
  stopCounting = () => {};
  node.hidden = !refusal || phase === "answered" || phase === "idle";
  if (node.hidden) return;
  node.dataset.kind = phase === "failed" ? "failed" : "refused";
  const text = el("p", {}, problemText(refusal));
  if (phase === "failed") {
    const button = el("button.small", { type: "button" }, t("again"));
    button.addEventListener("click", search);
    node.replaceChildren(text, button);
    say(problemText(refusal));
    return;
  }
  const counting = countdown(refusal.until, refusal.ms, () => t("refused.asking"));
  stopCounting = counting.stop;
  node.replaceChildren(text, counting.node);
}
