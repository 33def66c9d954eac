/** The conversation: what is said, one turn at a time, how it is stopped, and the cards that are kept. */

import { cardOf } from "./cards.js";
import { allKept, forgetAll, keep, keepTalk, keptTalk } from "./shelf.js";
import { ended, messagesOf, newTurn, runTurn } from "./turn.js";
import { turnView } from "./turn-view.js";
import { onTyping } from "./typing.js";
import { say } from "./shared/announce.js";
import { $, el, setText } from "./shared/dom.js";
import { count } from "./shared/format.js";
import { language, t } from "./shared/i18n.js";

const SAID_MAX = 15;
const CHARS_MAX = 4000;
const STARTERS = 3;

/** @type {import("./turn.js").Turn[]} */
let turns = keptTalk();
/** @type {any} how the service makes turns */
let manner = null;
let running = /** @type {AbortController|null} */ (null);

export function startTalk() {
  onTyping($("say"), (_, now) => { if (now) speak(); });
  $("say-form").addEventListener("submit", (event) => { event.preventDefault(); speak(); });
  $("stop").addEventListener("click", cancel);
  $("new-talk").addEventListener("click", () => {
    cancel();
    turns = [];
    keepTalk(turns);
    drawTalk();
    $("say").focus();
  });
  $("forget").addEventListener("click", () => { forgetAll(); turns = []; keepTalk(turns); drawTalk(); $("say").focus(); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.isComposing && !document.querySelector("dialog[open]")) cancel();
  });
  drawTalk();
}

/** @param {any} told  the service's own word on its turns */
export function knowManner(told) {
  manner = told;
  drawModel();
}

/** End the turn that runs; the service ends its call upstream. */
export function cancel() { running?.abort(); }

/** Draw everything again: at the start, and in another language. A turn that runs goes on by itself. */
export function drawTalk() {
  if (!running) $("turns").replaceChildren(...turns.map((turn) => turnView(turn, manner?.clocks).node));
  drawModel();
  drawShelf();
  drawStarters();
}

function drawModel() {
  const key = !manner ? "talk.unknown" : !manner.model ? "talk.off" : manner.local ? "talk.local" : "talk.model";
  setText($("talk-model"), t(key, { model: manner?.model || "" }));
}

function drawStarters() {
  $("starters").hidden = $("talk-ask").hidden = turns.length > 0;
  $("new-talk").hidden = turns.length === 0;
  $("starters").replaceChildren(...Array.from({ length: STARTERS }, (_, k) => {
    const words = t(`starter.${k + 1}`);
    const button = el("button.example", { type: "button" }, words);
    button.addEventListener("click", () => { $("say").value = words; speak(); $("say").focus(); });
    return el("li", {}, button);
  }));
}

function drawShelf() {
  const cards = allKept();
  $("shelf").hidden = !cards.length;
  setText($("shelf-count"), t("shelf.count", { n: count(cards.length) }));
  $("shelf-cards").replaceChildren(...cards.map((card) => cardOf(card, false).node));
}

async function speak() {
  const words = $("say").value.trim();
  if (!words || running) return;
  $("say").value = "";
  running = new AbortController();
  const lang = language();
  const turn = newTurn(words);
  turns.push(turn);
  const view = turnView(turn, manner?.clocks);
  $("turns").append(view.node);
  drawStarters();
  drawRunning();
  // To its own top, within the log alone; from then on whoever reads decides.
  $("log").scrollTop += view.node.getBoundingClientRect().top - $("log").getBoundingClientRect().top - 14;
  await runTurn(turn, messagesOf(turns, SAID_MAX, CHARS_MAX), (name, body) => {
    view.tell(name, body);
    tellEars(name, turn);
  }, running.signal);
  running = null;
  keep(turn.cards);
  keepTalk(turns);
  drawRunning();
  if (language() === lang) drawShelf();
  else drawTalk();
}

function drawRunning() {
  const focused = document.activeElement;
  $("stop").hidden = !running;
  $("send").hidden = Boolean(running);
  if (running && focused === $("send")) $("stop").focus();
  if (!running && focused === $("stop")) $("say").focus();
}

function tellEars(name, turn) {
  if (name === "cards") say(t("ears.cards", { n: count(turn.cards.length) }));
  if (name === "phase" && ended(turn)) say(t(turn.phase === "done" ? "ears.done" : "ears.ended"));
}
