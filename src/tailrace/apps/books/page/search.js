/**
 * One search at a time: a newer one ends the one before, an older answer never overwrites a newer one, and a
 * refusal is obeyed: nothing is asked before the time it named, and then by itself. Draws nothing.
 */

import { asked, searchPath, writeAddress } from "./asked.js";
import { refusedFor } from "./patience.js";
import { ask } from "./shared/ask.js";

const TRIES_MAX = 8;
/** @type {{phase: "idle"|"asking"|"answered"|"refused"|"failed", answer: any, refusal: any}} */
export const seen = { phase: "idle", answer: null, refusal: null };

let draw = () => {};
let number = 0;
let running = /** @type {AbortController|null} */ (null);
let backAt = 0;
let waiting = 0;
let tries = 0;
/** The latest refusal: whoever asks before its time is shown it again. */
let latest = /** @type {any} */ (null);

/** @param {() => void} fn called whenever `seen` has changed */
export const onSeen = (fn) => { draw = fn; };

/** Search for what is asked now, as soon as that is allowed. */
export function search() {
  tries = 0;
  writeAddress();
  if (!asked.q.trim()) return stop();
  return begin();
}

function stop() {
  running?.abort();
  clearTimeout(waiting);
  number += 1;
  Object.assign(seen, { phase: "idle", answer: null, refusal: null });
  draw();
}

function begin() {
  clearTimeout(waiting);
  const early = backAt - performance.now();
  if (early <= 0) return one();
  waiting = setTimeout(begin, early);
  Object.assign(seen, { phase: "refused", refusal: latest });
  return draw();
}

async function one() {
  running?.abort();
  running = new AbortController();
  number += 1;
  const mine = number;
  seen.phase = "asking";
  draw();
  let answer;
  try {
    answer = await ask(searchPath(), undefined, running.signal);
  } catch {
    if (mine !== number) return undefined;
    answer = { status: 0, body: null, roundTripMs: 0, timing: { parts: {}, total: null } };
  }
  if (mine !== number) return undefined;
  if (answer.status === 200) {
    backAt = tries = 0;
    Object.assign(seen, { phase: "answered", answer, refusal: null });
    return draw();
  }
  const ms = refusedFor(answer);
  tries += 1;
  backAt = performance.now() + (ms ?? 0);
  latest = { ...answer, ms, until: backAt };
  if (ms !== null && tries <= TRIES_MAX) return begin();
  Object.assign(seen, { phase: "failed", refusal: latest });
  return draw();
}
