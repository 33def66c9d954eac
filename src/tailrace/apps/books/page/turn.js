/**
 * One recommendation turn as the page lives through it: asked, refused or streamed, ended or broken off.
 * Keeps what is finished whatever happens. Draws nothing.
 */

import { patiently } from "./patience.js";
import { at, backIn, JSON_HEAD } from "./shared/ask.js";
import { readEvents } from "./sse.js";

/**
 * @typedef {object} Turn
 * @property {string} asked
 * @property {"asking"|"refused"|"running"|"done"|"error"|"cancelled"|"cut"|"failed"} phase
 * @property {any} spec
 * @property {any[]} cards  each with its finished texts
 * @property {string[]} degraded
 * @property {any} end  the body of `done` or `error`, or the refusal
 */

/** @returns {Turn} */
export const newTurn = (asked) => ({ asked, phase: "asking", spec: null, cards: [], degraded: [], end: null });

export const ended = (turn) => !["asking", "refused", "running"].includes(turn.phase);

/**
 * Run a turn to its end.
 * @param {Turn} turn
 * @param {{role: string, content: string}[]} messages
 * @param {(what: string, body: any) => void} tell  `event` names as they come, and `phase` on a change of it
 * @param {AbortSignal} signal
 */
export async function runTurn(turn, messages, tell, signal) {
  const phase = (name, end) => {
    turn.phase = name;
    if (end !== undefined) turn.end = end;
    tell("phase", turn);
  };
  try {
    const { stream, ...answer } = await patiently(
      () => entered(messages, signal), (refusal) => phase("refused", refusal), () => phase("asking"), signal);
    if (!stream) return phase("failed", answer);
    phase("running");
    await readEvents(stream, (name, data) => { take(turn, name, data); tell(name, data); });
    if (!ended(turn)) turn.phase = "cut";
  } catch (error) {
    if (signal.aborted) turn.phase = "cancelled";
    else if (turn.phase === "running") turn.phase = "cut";
    else Object.assign(turn, { phase: "failed", end: { status: 0, body: null } });
  }
  return tell("phase", turn);
}

/** One try at getting in: the stream, or what was said instead. */
async function entered(messages, signal) {
  const answer = await fetch(at("api/books/recommend"), {
    method: "POST", headers: JSON_HEAD, body: JSON.stringify({ messages }), cache: "no-store", signal,
  });
  if (answer.ok) return { status: answer.status, stream: answer.body, body: null };
  let body = null;
  try { body = await answer.json(); } catch { /* a proxy's page: the status says it */ }
  return { status: answer.status, stream: null, body, ...backIn(answer.headers) };
}

/** What an event means for the turn. */
function take(turn, name, data) {
  if (name === "spec") turn.spec = data;
  if (name === "cards") {
    turn.cards = data.cards;
    turn.degraded = data.degraded;
  }
  const kind = /^(short|long)\.done$/.exec(name)?.[1];
  if (kind) {
    const card = turn.cards.find((one) => one.card_id === data.card_id);
    if (card) card[`reason_${kind}`] = data.text;
  }
  if (name === "done" || name === "error") {
    const result = name === "done" ? data : data.partial;
    Object.assign(turn, { phase: name, end: data, cards: result.cards, degraded: result.degraded });
  }
}

/** The conversation as the service takes it: what was said, and what was shown. */
export function messagesOf(turns, turnsMax, charsMax) {
  return turns.slice(-turnsMax).flatMap((turn) => {
    const said = [{ role: "user", content: turn.asked.slice(0, charsMax) }];
    const shown = turn.cards.map((card, k) => `${k + 1}. ${card.title} (${card.author || "?"}) ${card.reason_short || ""}`.trim());
    if (ended(turn) && shown.length) said.push({ role: "assistant", content: shown.join("\n").slice(0, charsMax) });
    return said;
  });
}
