/** The controls: how many come, with which reviews, and sending them. */

import { $, setText } from "./shared/dom.js";
import { csv, download, json } from "./export.js";
import { copy } from "./shared/copy.js";
import { guests, MOST, replay, send, stop } from "./crowd.js";
import { count, seconds } from "./shared/format.js";
import { t } from "./shared/i18n.js";
import { say } from "./shared/announce.js";
import { busy, on, size, state, tell } from "./state.js";
import { drawLane } from "./lane.js";
import { summarise } from "./summary.js";
import { verdict } from "./verdict.js";

export function startControls() {
  for (const input of document.querySelectorAll("input[name=size]")) {
    input.addEventListener("change", () => {
      state.size = input.value === "n" ? "n" : /** @type {any} */ (Number(input.value));
      tell("choice");
    });
  }
  $("n").addEventListener("input", () => {
    const n = Math.round(Number($("n").value));
    if (n >= 1 && n <= MOST) { state.n = n; state.size = "n"; tell("choice"); }
  });
  $("n").addEventListener("blur", () => { $("n").value = String(state.n); });
  for (const input of document.querySelectorAll("input[name=source]")) {
    input.addEventListener("change", () => {
      state.source = input.value;
      tell("choice");
      if (state.source === "typed") $("typed").focus();
    });
  }
  $("typed").addEventListener("input", () => { state.typed = $("typed").value; tell("choice"); });
  $("shuffle").addEventListener("click", shuffle);
  $("send").addEventListener("click", go);
  $("replay").addEventListener("click", goAll);
  $("stop").addEventListener("click", stop);
  $("pause").addEventListener("click", pause);
  $("ghosts").addEventListener("change", () => { state.ghosts = $("ghosts").checked; tell("choice"); });
  $("csv").addEventListener("click", () => download(csv(), "csv"));
  $("json").addEventListener("click", () => download(json(), "json"));
  $("link").addEventListener("click", () => copy(location.href));
  for (const what of ["choice", "run", "row", "link", "stats"]) on(what, later);
  on("run", (run) => { if (run && run.phase !== "running") say(verdict(run)); });
  on("row", ({ run }) => {
    const s = summarise(run);
    if (s.pending) say(t("run.progress", { done: count(s.n - s.pending), n: count(s.n) }));
  });
  drawControls();
}

let queued = false;
function later() {
  if (queued) return;
  queued = true;
  requestAnimationFrame(() => { queued = false; drawControls(); });
}

/** Different examples: a new seed, a new crowd. */
export function shuffle() {
  if (busy()) return;
  state.seed = 1 + Math.floor(Math.random() * 9998);
  state.source = "examples";
  tell("choice");
}

const can = () => !busy() && state.ready && state.link !== "gone" && guests().length > 0;
export function go() { if (can()) send(state.door); }
export function goAll() { if (can()) replay(); }

export function pause() {
  state.paused = !state.paused;
  drawControls();
  if (!state.paused) drawLane();
}

export function drawControls() {
  const people = guests();
  const n = people.length;
  const working = busy();
  for (const input of document.querySelectorAll("input[name=size]")) {
    input.checked = input.value === String(state.size);
    input.disabled = working || state.source === "typed";
  }
  $("n").disabled = working || state.source === "typed";
  if (document.activeElement !== $("n")) $("n").value = String(state.n);
  for (const input of document.querySelectorAll("input[name=source]")) {
    input.checked = input.value === state.source;
    input.disabled = working;
  }
  $("typed-box").hidden = state.source !== "typed";
  setText($("typed-count"), t("typed.count", { n: count(n), most: MOST }));
  $("shuffle").disabled = working || state.source === "typed";
  const focus = document.activeElement;
  $("send").disabled = !can();
  $("replay").disabled = !can();
  $("send").hidden = working;
  $("stop").hidden = !working;
  if (working && (focus === $("send") || focus === $("replay"))) $("stop").focus();
  if (!working && focus === $("stop")) $("send").focus();
  setText($("send-text"), n === 1 ? t("send.one") : n === 0 ? t("send.none") : n === 12 ? t("send.twelve") : t("send.many", { n: count(n) }));
  setText($("replay-text"), t("replay"));
  setText($("pause"), t(state.paused ? "resume" : "pause"));
  $("pause").setAttribute("aria-pressed", String(state.paused));
  $("csv").disabled = $("json").disabled = working || !state.run;
  drawTitle(state.source === "typed" ? n : size());
  drawRunLine();
  drawBanner();
}

function drawTitle(n) {
  const s = state.stats?.lane?.service_s;
  const key = n === 12 ? "title.twelve" : n === 1 ? "title.one" : "title.many";
  const about = s ? t("title.time", { s: seconds(s) }) : t("title.time.unknown");
  setText($("title"), t(key, { time: about, n: count(n) }));
}

function drawRunLine() {
  const run = state.run;
  const others = Object.values(state.runs).filter(Boolean).length > 1;
  $("ghosts").parentElement.hidden = !others;
  $("csv").hidden = $("json").hidden = !run;
  if (!run) {
    setText($("run-line"), t(guests().length === 1 ? "run.none.one" : "run.none", { n: count(guests().length) }));
    return;
  }
  const s = summarise(run);
  const key = run.phase === "running" ? "run.running" : run.phase === "done" ? "run.done" : `run.${run.phase}`;
  setText($("run-line"), t(key, {
    door: t(`door.${run.door}`), n: count(s.n), answered: count(s.answered),
    turned: count(s.refused + s.timeout), lost: count(s.killed + s.failed), done: count(s.n - s.pending),
    why: run.error?.message || "",
  }));
  const step = state.replay;
  setText($("replay-line"), step ? t("replay.at", { at: step.at + 1, total: step.total }) : "");
}

function drawBanner() {
  const key = state.link === "gone" ? "banner.gone" : !state.ready ? "banner.loading" : "";
  $("banner").hidden = !key || state.link === "starting";
  if (key) setText($("banner-text"), t(key));
  $("banner").dataset.kind = state.link === "gone" ? "gone" : "loading";
  setText($("link-state"), t(`link.${state.link}`));
  $("link-state").dataset.link = state.link;
}
