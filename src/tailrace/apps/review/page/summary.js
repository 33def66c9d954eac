/**
 * The numbers of one run, computed from its rows and from nothing else. No mean, and no high percentile
 * of a dozen requests: the middle, the worst, and how many.
 */

import { endOf, fateOf, inferOf, waitOf } from "./state.js";

/** The middle of some numbers; null of none. @param {number[]} values */
export function median(values) {
  if (!values.length) return null;
  const s = values.slice().sort((a, b) => a - b);
  const mid = s.length >> 1;
  return s.length % 2 ? s[mid] : (s[mid - 1] + s[mid]) / 2;
}

const most = (values) => (values.length ? Math.max(...values) : null);
const least = (values) => (values.length ? Math.min(...values) : null);

/** @param {import("./state.js").Run} run */
export function summarise(run) {
  const by = { sent: [], ticket: [], answered: [], refused: [], timeout: [], killed: [], failed: [] };
  for (const row of run.rows) by[fateOf(row)].push(row);
  const ends = by.answered.map(endOf);
  const batches = by.answered.filter((r) => r.batchSize && r.cache !== "hit");
  const biggest = batches.reduce((top, r) => (!top || r.batchSize > top.batchSize ? r : top), null);
  const retries = by.refused.map((r) => r.retryAfterS).filter((s) => s !== null);
  return {
    n: run.rows.length,
    answered: ends.length,
    refused: by.refused.length,
    timeout: by.timeout.length,
    killed: by.killed.length,
    failed: by.failed.length,
    pending: by.sent.length + by.ticket.length,
    hits: by.answered.filter((r) => r.cache === "hit").length,
    firstMs: least(ends),
    p50Ms: median(ends),
    worstMs: most(ends),
    lastMs: most(run.rows.map(endOf).filter((e) => e !== null)),
    longestWaitMs: most(by.answered.map(waitOf).filter((w) => w !== null)),
    inferMs: median(by.answered.map(inferOf).filter((w) => w !== null && w > 0)),
    toldMs: most(by.refused.map((r) => r.roundTripMs)),
    retryFromS: least(retries),
    retryToS: most(retries),
    acceptedMs: most(run.rows.filter((r) => r.ticket).map((r) => r.roundTripMs)),
    runs: Math.round(batches.reduce((sum, r) => sum + 1 / r.batchSize, 0)),
    batch: biggest?.batchSize ?? null,
    batchInferMs: biggest ? inferOf(biggest) : null,
    rssPeak: run.rssPeak,
    rssLimit: run.rssLimit,
  };
}

/**
 * How many were answered by when: the steps of a curve from 0 to `answered`.
 * @param {import("./state.js").Run} run
 */
export function steps(run) {
  return run.rows.filter((r) => fateOf(r) === "answered").map(endOf).sort((a, b) => a - b);
}
