/** The detail of one request: all topics with their scores, every part of its time, the curl that repeats it. */

import { curlOf, curlOfTicket } from "./api.js";
import { copy } from "./shared/copy.js";
import { el, setVars } from "./shared/dom.js";
import { duration, score } from "./shared/format.js";
import { knows, t } from "./shared/i18n.js";
import { SIGN, state, topicsOf } from "./state.js";
import { topicName } from "./topics.js";

/**
 * @param {import("./state.js").Run} run
 * @param {import("./state.js").Row} row
 */
export function makeDetail(run, row) {
  return el("div.detail", {},
    el("p.whole", {}, row.text),
    el("div.columns", {}, topics(row), times(run, row)),
    curl(run, row));
}

function topics(row) {
  const list = topicsOf(row);
  const box = el("section", {}, el("h3", {}, t("detail.topics")));
  if (!list) {
    const problem = row.body;
    box.append(el("p.muted", {}, problem?.detail || row.error || t(row.phase === "done" ? "detail.none" : "detail.waiting")));
    if (problem?.code) box.append(el("p", {}, el("code", {}, `${row.status} ${problem.code}`)));
    return box;
  }
  const weakBelow = state.model?.weak_below ?? 0.35;
  const items = list.map((topic) => {
    const weak = topic.score < weakBelow;
    const bar = el("span.bar");
    setVars(bar, { width: `${Math.max(0, Math.min(1, topic.score)) * 100}%` });
    return el("li", { "data-weak": weak },
      el("span.name", {}, topicName(topic)), el("span.meter", {}, bar), el("span.score", {}, score(topic.score)));
  });
  const firstWeak = list.findIndex((topic) => topic.score < weakBelow);
  if (firstWeak >= 0) {
    items.splice(firstWeak, 0, el("li.line", {}, t("detail.weak", { limit: score(weakBelow) })));
  }
  box.append(el("ol.topics", {}, ...items));
  return box;
}

function times(run, row) {
  const client = t(run.clock === "box" ? "clock.box" : "clock.browser");
  const server = t("clock.server");
  const lines = Object.entries(row.parts).map(([name, value]) => [partName(name), value, server]);
  if (row.totalMs !== null) lines.push([t("part.total"), row.totalMs, server, "sum"]);
  if (row.roundTripMs !== null && row.totalMs !== null) {
    lines.push([t("part.rest"), row.roundTripMs - row.totalMs, t("clock.difference")]);
  }
  if (row.roundTripMs !== null) {
    lines.push([t(row.ticket ? "part.accept" : "part.rt"), row.roundTripMs, client, "sum"]);
  }
  if (row.ticket && row.ticket.ms !== null) {
    lines.push([t("part.ticket.wait"), row.ticket.waitedMs, server]);
    lines.push([t("part.infer"), row.ticket.inferenceMs, server]);
    lines.push([t("part.ticket"), row.ticket.ms, client, "sum"]);
    const promised = row.ticket.promisedS;
    lines.push([t("part.promised"), promised === null ? null : promised * 1000, t("clock.promise")]);
  }
  const body = lines.map(([name, value, who, kind]) => el(`tr${kind ? `.${kind}` : ""}`, {},
    el("th", { scope: "row" }, name), el("td.num", {}, value === null ? "–" : precise(value)), el("td", {}, who)));
  const facts = [
    row.cache && `X-Cache: ${row.cache}`, row.batchSize && `X-Batch-Size: ${row.batchSize}`,
    row.retryAfterS !== null && `Retry-After: ${row.retryAfterS}`,
    row.retryAfterMs !== null && `retry-after-ms: ${row.retryAfterMs}`,
  ].filter(Boolean);
  return el("section", {}, el("h3", {}, t("detail.times")),
    el("table.parts", {},
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, t("detail.part")),
        el("th.num", { scope: "col" }, "ms"), el("th", { scope: "col" }, t("detail.who")))),
      el("tbody", {}, ...body)),
    facts.length ? el("p.facts", {}, ...facts.map((f) => el("code", {}, f))) : null,
    others(run, row));
}

const precise = (value) => value.toFixed(value < 100 ? 2 : 1);

/** The same review at the other doors. */
function others(run, row) {
  const found = Object.values(state.runs).filter((r) => r && r !== run && r.crowd === run.crowd);
  if (!found.length) return null;
  return el("p.muted", {}, `${t("detail.others")} `, ...found.map((r) => {
    const other = r.rows[row.i];
    const text = other.status && !topicsOf(other) ? String(other.status) : duration(other.ticket?.ms ?? other.roundTripMs);
    return el("span.other", {}, `${SIGN[r.door]} ${text}`);
  }));
}

const partName = (name) => (knows(`part.${name}`) ? t(`part.${name}`) : name);

function curl(run, row) {
  const text = curlOf(run.door, row.text) + (row.ticket ? `\n${curlOfTicket(row.ticket.id)}` : "");
  return el("section.curl", {}, el("h3", {}, t("detail.curl")),
    el("pre", { tabindex: 0 }, el("code", {}, text)),
    el("button.small", { type: "button", on: { click: () => copy(text) } }, t("copy")));
}
