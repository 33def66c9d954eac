/**
 * The live state of the box: one event stream for the whole page, closed while nobody looks, and polling
 * (each poll after the last has come back) where the stream does not get through.
 */

import { ask, at } from "./shared/ask.js";
import { state, tell } from "./state.js";

const POLL_MS = 1000;
const READY_MS = 1500;
const STREAM_TRIES = 2;

/** @type {EventSource|null} */
let source = null;
let fails = 0;
let poll = 0;
/** The id of the latest event, so that a new stream may say where the page stopped. */
let lastId = "";

export function startFeed() {
  document.addEventListener("visibilitychange", () => (document.hidden ? rest() : open()));
  open();
  checkReady();
  loadModel();
}

function open() {
  if (source || document.hidden) return;
  source = new EventSource(at(lastId ? `api/events?last_event_id=${encodeURIComponent(lastId)}` : "api/events"));
  source.addEventListener("stats", (event) => {
    fails = 0;
    lastId = event.lastEventId || lastId;
    link("live");
    take(event.data);
  });
  source.addEventListener("open", () => { fails = 0; link("live"); });
  source.addEventListener("error", () => {
    fails += 1;
    link("gone");
    if (source?.readyState === EventSource.CLOSED || fails >= STREAM_TRIES) fallBack();
  });
}

/** Nobody looks: no stream, no polls, no work. */
function rest() {
  source?.close();
  source = null;
  clearTimeout(poll);
  link("hidden");
}

function fallBack() {
  source?.close();
  source = null;
  clearTimeout(poll);
  let turns = 0;
  const turn = async () => {
    if (document.hidden || source) return;
    try {
      const { status, body } = await ask("api/stats");
      if (status !== 200) throw new Error(String(status));
      link("polling");
      give(body);
      turns += 1;
      if (turns >= 3) { fails = 0; open(); return; }
    } catch {
      link("gone");
    }
    poll = setTimeout(turn, POLL_MS);
  };
  turn();
}

function take(data) {
  try { give(JSON.parse(data)); } catch { /* a torn event: the next one comes within a moment */ }
}

function give(stats) {
  state.stats = stats;
  tell("stats");
}

function link(now) {
  if (state.link === now) return;
  const back = state.link === "gone" && (now === "live" || now === "polling");
  state.link = now;
  tell("link");
  if (back) { checkReady(); loadModel(); }
}

let checking = false;
/** Ask until the model answers; then once more whenever the box has come back. */
async function checkReady() {
  if (checking) return;
  checking = true;
  for (;;) {
    let ready = false;
    try { ready = (await ask("readyz")).status === 200; } catch { /* gone: the link says so */ }
    if (ready !== state.ready) { state.ready = ready; tell("link"); if (ready) loadModel(); }
    if (ready) break;
    await new Promise((done) => setTimeout(done, READY_MS));
  }
  checking = false;
}

async function loadModel() {
  try {
    const { status, body } = await ask("api/model");
    if (status === 200) { state.model = body; tell("model"); }
  } catch { /* gone: asked again when the box is back */ }
}
