/**
 * One recommendation turn as the page lives through it: asked, refused or streamed, ended or broken off.
 * Keeps what is finished whatever happens. Draws nothing.
 */

import { at, JSON_HEAD } from "./shared/ask.js";
import { readEvents } from "./sse.js";

const TRIES_MAX = 5;
const UNTOLD_MS = 2000;

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
    const body = await admitted(messages, (refusal) => phase("refused", refusal), () => phase("asking"), signal);
    phase("running");
    await readEvents(body, (name, data) => { take(turn, name, data); tell(name, data); });
    if (!ended(turn)) turn.phase = "cut";
  } catch (error) {
    if (signal.aborted) turn.phase = "cancelled";
    else if (error instanceof Refused) Object.assign(turn, { phase: "failed", end: error.answer });
    else if (turn.phase === "running") turn.phase = "cut";
    else Object.assign(turn, { phase: "failed", end: { status: 0, body: null } });
  }
  tell("phase", turn);
}

class Refused extends Error {
  /** @param {{status: number, body: any}} answer */
  constructor(answer) {
    super(String(answer.status));
    this.answer = answer;
  }
}

/** The body of the stream; a refusal that names a time is waited for and tried again. */
async function admitted(messages, refused, asking, signal) {
  for (let tries = 1; ; tries += 1) {
    const answer = await fetch(at("api/books/recommend"), {
      method: "POST", headers: JSON_HEAD, body: JSON.stringify({ messages }), cache: "no-store", signal,
    });
    if (answer.ok && answer.body) return answer.body;
    let body = null;
    try { body = await answer.json(); } catch { /* a proxy's page: the status says it */ }
    const told = { status: answer.status, body };
    if (![429, 503].includes(answer.status) || tries === TRIES_MAX) throw new Refused(told);
    const exact = answer.headers.get("retry-after-ms");
    const whole = answer.headers.get("retry-after");
    const ms = exact !== null ? Number(exact) : whole !== null ? Number(whole) * 1000 : UNTOLD_MS;
    refused({ ...told, ms, until: performance.now() + ms });
    await pause(ms, signal);
    asking();
  }
}

const pause = (ms, signal) => new Promise((resolve, reject) => {
  const left = () => { clearTimeout(timer); reject(signal.reason); };
  const timer = setTimeout(() => { signal.removeEventListener("abort", left); resolve(undefined); }, ms);
  signal.addEventListener("abort", left, { once: true });
});

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
