/** How a turn looks: what was said, its clocks, what is searched, cards as they come, and how it ended. */

import { cardOf } from "./cards.js";
import { Clocks } from "./clocks.js";
import { countdown } from "./countdown.js";
import { partsBar } from "./parts.js";
import { degradedText, problemText } from "./problem.js";
import { ended } from "./turn.js";
import { el, setText } from "./shared/dom.js";
import { count } from "./shared/format.js";
import { knows, t } from "./shared/i18n.js";

/** @param {import("./turn.js").Turn} turn @param {Record<string, number>|undefined} limits */
export function turnView(turn, limits) {
  const live = !ended(turn);
  const clocks = live ? new Clocks(limits) : null;
  const step = el("p.step");
  const list = el("ol.cards");
  const foot = el("div.turn-foot");
  const node = el("li.turn", {}, el("p.said", {}, turn.asked), step, clocks?.node, list, foot);
  /** @type {Map<string, ReturnType<typeof cardOf>>} */
  const cards = new Map();
  let stopCounting = () => {};

  const fill = (writing) => {
    cards.clear();
    for (const card of turn.cards) cards.set(card.card_id, cardOf(card, writing));
    list.replaceChildren(...[...cards.values()].map((card) => card.node));
  };
  const phase = () => {
    node.dataset.phase = turn.phase;
    stopCounting();
    foot.replaceChildren();
    setText(step, stepText(turn));
    if (turn.phase === "refused") {
      const counting = countdown(turn.end.until, turn.end.ms, () => t("refused.asking"));
      stopCounting = counting.stop;
      foot.replaceChildren(el("div.notice", {}, el("p", {}, problemText(turn.end)), counting.node));
    }
    if (!ended(turn)) return;
    clocks?.end(...(turn.phase === "error" ? [turn.end.stage, turn.end.code === "turn-timeout"] : []));
    settle();
    foot.replaceChildren(...footOf(turn));
  };
  /** The finished texts as the service has them; what was being written stays, marked. */
  const settle = () => {
    for (const card of turn.cards) {
      for (const kind of ["short", "long"]) {
        if (card[`reason_${kind}`]) cards.get(card.card_id)?.done(kind, card[`reason_${kind}`]);
      }
    }
    for (const card of cards.values()) card.end();
  };

  if (live) clocks?.begin();
  fill(live);
  phase();
  return {
    node,
    /** Something happened in the turn. @param {string} name @param {any} body */
    tell(name, body) {
      if (name === "phase") return phase();
      clocks?.event(name, body);
      if (name === "spec") setText(step, stepText(turn));
      if (name === "cards") {
        fill(!turn.degraded.some((code) => code === "llm-off" || code === "no-reasons"));
        setText(step, stepText(turn));
      }
      const [kind, what] = name.split(".");
      const card = body.card_id && cards.get(body.card_id);
      if (card && what === "delta") card.add(kind, body.text);
      if (card && what === "done") card.done(kind, body.text);
      return undefined;
    },
  };
}

function stepText(turn) {
  if (!turn.spec) return ended(turn) ? "" : t(turn.phase === "refused" ? "turn.refused" : "turn.reading");
  const words = [turn.spec.query, turn.spec.category, turn.spec.author, years(turn.spec)].filter(Boolean).join(" · ");
  return t(turn.spec.by === "model" ? "turn.spec.model" : "turn.spec.words", { words });
}

const years = ({ year_from: from, year_to: to }) => (from || to ? `${from ?? ""}–${to ?? ""}` : "");

function footOf(turn) {
  const notes = [];
  const headline = endText(turn);
  if (headline) notes.push(el("p.end", { "data-kind": turn.phase }, headline));
  for (const code of turn.degraded) notes.push(el("p.note", { "data-code": code }, degradedText(code)));
  if (turn.phase === "done" && !turn.cards.length) notes.push(el("p.note", {}, t("turn.none")));
  const result = turn.phase === "done" ? turn.end : turn.phase === "error" ? turn.end.partial : null;
  if (result) {
    notes.push(partsBar(result.timing_ms, null));
    notes.push(el("p.muted.tokens", {}, tokensText(result.tokens)));
  }
  return notes;
}

function endText(turn) {
  if (turn.phase === "failed") return problemText(turn.end);
  if (turn.phase === "error") {
    const { stage, code, detail } = turn.end;
    const key = code === "turn-timeout" ? `stage.${stage}.timeout` : `stage.${stage}`;
    const text = knows(key) ? t(key) : t("stage.other", { detail });
    return turn.cards.length ? `${text} ${t("turn.partial")}` : text;
  }
  return ["cancelled", "cut"].includes(turn.phase) ? t(`turn.${turn.phase}`) : "";
}

const tokensText = (tokens) => t(tokens.counted ? "tokens.counted" : "tokens", {
  calls: count(tokens.calls), prompt: count(tokens.prompt), completion: count(tokens.completion), reasoning: count(tokens.reasoning),
});
