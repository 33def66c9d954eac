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

/** @param {() => void} fn called whenever `seen` has changed */
export const onSeen = (fn) => { draw = fn; };

/** Search for what is asked now, as soon as that is allowed. */
export function search() {
  tries = 0;
  writeAddress();
  if (!asked.q.trim()) return stop();
  return begin();
}

/** Ask again at once, whatever was said before: somebody wants it so. */
export function again() {
  backAt = 0;
  return search();
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
  if (early > 0) { waiting = setTimeout(begin, early); return undefined; }
  return one();
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
    if (mine !== number) return;
    answer = { status: 0, body: null, roundTripMs: 0, timing: { parts: {}, total: null } };
  }
  if (mine !== number) return;
  const ms = refusedFor(answer);
  if (answer.status === 200) {
    backAt = tries = 0;
    Object.assign(seen, { phase: "answered", answer, refusal: null });
  } else if (ms !== null && tries < TRIES_MAX) {
    refused(answer, ms);
  } else {
    Object.assign(seen, { phase: "failed", refusal: { ...answer, until: 0 } });
  }
  draw();
}

function refused(answer, ms) {
  tries += 1;
  backAt = performance.now() + ms;
  Object.assign(seen, { phase: "refused", refusal: { ...answer, ms, until: backAt } });
  waiting = setTimeout(begin, ms);
}
