/** What a screen reader is told: the latest summary, politely, at most once in five seconds. */

import { $ } from "./dom.js";

const EVERY_MS = 5000;
let last = -EVERY_MS;
let waiting = null;
let next = "";

/** @param {string} text the whole summary; a newer one replaces one that has not been said */
export function say(text) {
  next = text;
  if (waiting !== null) return;
  const wait = Math.max(0, last + EVERY_MS - performance.now());
  waiting = setTimeout(() => {
    waiting = null;
    last = performance.now();
    $("announce").textContent = next;
  }, wait);
}

let hide = null;
/** A short word for the eye, such as "copied". */
export function toast(text) {
  const node = $("toast");
  node.textContent = text;
  node.hidden = false;
  clearTimeout(hide);
  hide = setTimeout(() => { node.hidden = true; }, 1800);
}
