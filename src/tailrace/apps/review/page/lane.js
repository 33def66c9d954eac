/** The lane as places: who is inside the model, who stands in line, which seats are free. */

import { $, el, setText } from "./shared/dom.js";
import { bytes, count, duration } from "./shared/format.js";
import { knows, t } from "./shared/i18n.js";
import { DOORS, on, SIGN, state } from "./state.js";

const MOST_PLACES = 24;
const MOST_SLIPS = 40;

export function startLane() {
  on("stats", () => { if (!state.paused) drawLane(); });
}

export function drawLane() {
  const s = state.stats;
  if (!s) return;
  const line = s.lane.line || [];
  const inside = line.filter((w) => w.state === "running");
  const waiting = line.filter((w) => w.state !== "running");
  const slots = Math.max(1, s.lane.slots || 1);
  const box = inside.map(place);
  while (box.length < slots) box.push(el("span.place.free"));
  $("lane-inside").replaceChildren(...box);
  $("lane-inside").dataset.batch = String(inside.length > 1);
  const queue = waiting.slice(0, MOST_PLACES).map(place);
  const seats = s.doors?.limited?.seats ?? 0;
  for (let k = waiting.length; k < seats; k++) queue.push(el("span.place.free"));
  if (waiting.length > MOST_PLACES) queue.push(el("span.more", {}, `+${waiting.length - MOST_PLACES}`));
  $("lane-line").replaceChildren(...queue);
  drawSlips(s.tickets);
  setText($("lane-text"), t(inside.length > 1 ? "lane.text.batch" : "lane.text", {
    running: count(inside.length), waiting: count(s.lane.waiting), tickets: count(s.tickets.queued), service: duration((s.lane.service_s || 0) * 1000),
  }));
  setText($("lane-naive"), naiveText(s));
  drawTally(s);
}

/** Tickets that wait, out of as many as may wait: a slip for each. */
function drawSlips(tickets) {
  const most = Math.min(tickets.limit ?? 0, MOST_SLIPS);
  const slips = [];
  for (let k = 0; k < Math.max(most, Math.min(tickets.queued, MOST_SLIPS)); k++) {
    slips.push(el(k < tickets.queued ? "span.slip.held" : "span.slip"));
  }
  $("lane-tickets").replaceChildren(...slips);
}

function place(work) {
  const where = work.state === "running" ? "in" : "out";
  return el(`span.place.${where}`, { "data-door": work.door }, SIGN[work.door] || "·");
}

function naiveText(s) {
  if (!s.naive) return t("naive.off");
  const holes = {
    running: count(s.naive.running), restarts: count(s.naive.restarts), rss: bytes(s.naive.rss_bytes),
    limit: bytes(s.naive.limit_bytes), why: whyOf(s.naive.killed_because),
  };
  if (s.naive.state !== "ready") return t(s.naive.restarts ? "naive.starting" : "naive.first", holes);
  if (!s.naive.restarts) return t("naive.ready", holes);
  return t(s.naive.killed_because ? "naive.ready.why" : "naive.ready.restarts", holes);
}

/** The box's word for why the child died, in the language of the page where it is known. */
function whyOf(reason) {
  if (!reason) return t("why.unknown");
  return knows(`why.${reason}`) ? t(`why.${reason}`) : reason;
}

function drawTally(s) {
  const refused = (d) => Object.values(s.doors?.[d]?.refused || {}).reduce((sum, n) => sum + Number(n), 0);
  $("tally").replaceChildren(...DOORS.map((d) => el("tr", {},
    el("th", { scope: "row" }, el("span.sign", {}, SIGN[d]), el("span.vh", {}, t(`door.${d}`))),
    el("td.num", {}, count(s.doors?.[d]?.in_progress ?? 0)), el("td.num", {}, count(s.doors?.[d]?.waiting ?? 0)),
    el("td.num", {}, count(s.doors?.[d]?.answered ?? 0)), el("td.num", {}, count(refused(d))))));
  setText($("tickets-text"), t("tickets.text", {
    open: count(s.tickets.queued + s.tickets.running), limit: count(s.tickets.limit), done: count(s.tickets.done),
  }));
  setText($("cache-text"), t("cache.text", {
    entries: count(s.cache.entries), hits: count(s.cache.hits), misses: count(s.cache.misses),
  }));
}
