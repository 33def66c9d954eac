/**
 * What a door gave up, in sentences computed from a run. Chooses whole sentences by what happened; the
 * words themselves are in i18n/.
 */

import { bytes, count, duration, ratio } from "./shared/format.js";
import { t } from "./shared/i18n.js";
import { state } from "./state.js";
import { summarise } from "./summary.js";

/** Batching pays when one review in a batch costs clearly less than one alone. */
const CLEARLY = 1.15;

/**
 * @param {import("./state.js").Run} run
 * @returns {string} one to three sentences
 */
export function verdict(run) {
  const s = summarise(run);
  if (run.phase === "failed") return t("verdict.failed");
  if (run.phase === "stopped") return t("verdict.stopped", { answered: count(s.answered), n: count(s.n) });
  const words = holes(s);
  return keys(run, s).map((key) => t(key, words)).join(" ");
}

function keys(run, s) {
  const said = [];
  if (s.answered === s.n && s.hits === s.n) return ["verdict.cached"];
  if (s.n === 1 && s.answered === 1) return [run.door === "queue" ? "verdict.one.queue" : "verdict.one"];
  if (run.door === "naive") {
    said.push(s.killed ? "verdict.naive.killed" : "verdict.naive.all");
    if (s.rssPeak) said.push("verdict.naive.memory");
  } else if (run.door === "limited") {
    said.push(s.refused ? "verdict.limited.mixed" : "verdict.limited.all");
  } else if (run.door === "batched") {
    if (s.batchInferMs && s.batch > 1) {
      said.push("verdict.batched.runs");
      const gain = gainOf(s);
      if (gain !== null) said.push(gain > CLEARLY ? "verdict.batched.gain" : "verdict.batched.none");
    } else said.push("verdict.batched.alone");
    if (s.refused) said.push("verdict.refused");
  } else {
    said.push("verdict.queue.all");
    if (s.refused) said.push("verdict.refused");
  }
  if (s.timeout) said.push("verdict.timeout");
  if (s.failed) said.push("verdict.odd");
  return said;
}

/** How long one review takes when it runs alone: measured at door 2 if it ran, else told by the lane. */
export function aloneMs() {
  const run = state.runs.limited;
  const measured = run && run.phase === "done" ? summarise(run).inferMs : null;
  return measured ?? (state.stats?.lane?.service_s ? state.stats.lane.service_s * 1000 : null);
}

function gainOf(s) {
  const alone = aloneMs();
  return alone && s.batch ? alone / (s.batchInferMs / s.batch) : null;
}

function holes(s) {
  const gain = gainOf(s);
  const from = s.retryFromS;
  const to = s.retryToS;
  return {
    n: count(s.n), answered: count(s.answered), refused: count(s.refused), killed: count(s.killed),
    timeout: count(s.timeout), failed: count(s.failed), first: duration(s.firstMs), last: duration(s.worstMs),
    rt: duration(s.worstMs), wait: duration(s.longestWaitMs), told: duration(s.toldMs),
    retry: t("unit.s", { n: from === to ? count(from || 0) : `${count(from)}\u2060–\u2060${count(to)}` }),
    accepted: duration(s.acceptedMs), runs: count(s.runs), batch: count(s.batch || 0),
    infer: duration(s.batchInferMs), per: duration(s.batch ? s.batchInferMs / s.batch : null),
    alone: duration(aloneMs()), gain: gain === null ? "–" : ratio(gain), peak: bytes(s.rssPeak),
    limit: bytes(s.rssLimit),
  };
}
