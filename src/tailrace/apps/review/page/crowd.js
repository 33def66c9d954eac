/**
 * Sending: one guest by the browser's own fetch, a crowd by the box's own client, and the same crowd
 * through all four doors. Turns what comes back into rows; draws nothing.
 *
 * A browser opens six connections to a host. Twelve fetches at once would queue inside the browser and
 * their round trips would be its own invention, so a crowd is fired and timed inside the box.
 */

import { doorPath, fireCrowd } from "./api.js";
import { ask } from "./shared/ask.js";
import { choose, fromTyped } from "./reviews.js";
import { parseServerTiming } from "./shared/timing.js";
import { DOORS, newRow, size, state, tell } from "./state.js";

export const MOST = 60;
const CALM_WITHIN_MS = 60_000;
let nextId = 1;
/** @type {AbortController|null} */
let abort = null;

/** Who comes, by the choices on the page. */
export function guests() {
  if (state.source === "typed") return fromTyped(state.typed, MOST);
  return choose(state.seed, Math.min(size(), MOST));
}

const pause = (forMs) => new Promise((done) => setTimeout(done, forMs));

/**
 * Send the chosen crowd through one door and put it into the table.
 * @param {import("./state.js").Door} door
 * @param {{fresh?: boolean}} [how] fresh empties the answer cache first
 */
export async function send(door, how = {}) {
  const texts = guests();
  if (!texts.length) return null;
  const crowd = JSON.stringify(texts);
  if (Object.values(state.runs).some((r) => r && r.crowd !== crowd)) state.runs = {};
  /** @type {import("./state.js").Run} */
  const run = {
    id: nextId++, door, crowd, clock: texts.length === 1 && !how.fresh ? "browser" : "box",
    startedAt: new Date(), t0: performance.now(), phase: "running",
    rows: texts.map((text, i) => newRow(i, text)), rssPeak: null,
    rssLimit: state.stats?.naive?.limit_bytes ?? null, error: null,
  };
  state.run = run;
  state.runs[door] = run;
  state.open.clear();
  abort = new AbortController();
  tell("run", run);
  try {
    if (run.clock === "browser") await sendOne(run, abort.signal);
    else {
      await fireCrowd({ door, texts, fresh: how.fresh !== false }, (line) => take(run, line), abort.signal);
    }
    run.phase = "done";
  } catch (error) {
    run.phase = abort.signal.aborted ? "stopped" : "failed";
    run.error = /** @type {Error} */ (error);
  }
  tell("run", run);
  return run;
}

/** The same crowd through every door, one door after another, each with an empty cache. */
export async function replay() {
  state.runs = {};
  for (let k = 0; k < DOORS.length; k++) {
    state.replay = { at: k, total: DOORS.length };
    state.door = DOORS[k];
    tell("choice");
    const run = await send(DOORS[k], { fresh: true });
    if (!run || run.phase !== "done") break;
    if (k < DOORS.length - 1) await calm();
    if (abort?.signal.aborted) break;
  }
  state.replay = null;
  tell("run", state.run);
}

export function stop() {
  abort?.abort();
}

/** Wait until nobody is left in the box and the naive child is back: the next door starts even. */
async function calm() {
  const until = performance.now() + CALM_WITHIN_MS;
  while (performance.now() < until && !abort?.signal.aborted) {
    const s = await ask("api/stats").then((got) => got.body, () => null);
    if (s && s.lane.running + s.lane.waiting === 0 && (s.naive?.state ?? "ready") === "ready" && !s.naive?.running) return;
    await pause(200);
  }
}

/** One guest: the browser asks and the browser measures. */
async function sendOne(run, signal) {
  const row = run.rows[0];
  const got = await ask(doorPath(run.door), { text: row.text }, signal);
  put(row, {
    status: got.status, round_trip_ms: got.roundTripMs, timing: got.timing, x_cache: got.cache,
    x_batch_size: got.batchSize, retry_after: got.retryAfterS, retry_after_ms: got.retryAfterMs, body: got.body,
    ticket: got.status === 202 ? got.body : null,
  });
  tell("row", { run, row });
  while (row.phase === "ticket") {
    const job = await ask(`api/queue/jobs/${row.ticket?.id}`, undefined, signal);
    if (job.status !== 200) {
      put(row, { done: true, ticket_ms: performance.now() - run.t0, status: job.status, body: job.body });
    } else if (job.body.status === "done" || job.body.status === "failed") {
      put(row, { done: true, ticket_ms: performance.now() - run.t0, body: job.body });
    } else {
      Object.assign(row.ticket || {}, { position: job.body.position, etaS: job.body.eta_seconds, status: job.body.status });
      tell("row", { run, row });
      await pause(60);
    }
  }
  tell("row", { run, row });
}

/** One line of the crowd's stream. */
function take(run, line) {
  if (line.end) {
    run.rssPeak = line.rss_peak_bytes ?? null;
    return;
  }
  const row = run.rows[line.i];
  if (!row) return;
  put(row, { ...line, timing: parseServerTiming(line.server_timing) });
  tell("row", { run, row });
}

/** Write one answer into its row. */
function put(row, line) {
  if (line.done && row.ticket) {
    const job = line.ticket?.status ? line.ticket : line.body || {};
    row.phase = "done";
    row.body = job;
    if (line.status >= 400) row.status = line.status;
    row.error = line.error ?? null;
    Object.assign(row.ticket, {
      ms: line.ticket_ms, waitedMs: job.waited_ms ?? null, inferenceMs: job.inference_ms ?? null,
      status: typeof job.status === "string" ? job.status : "failed",
    });
    return;
  }
  row.status = line.status;
  row.sentMs = line.sent_ms || 0;
  row.roundTripMs = line.round_trip_ms;
  row.parts = line.timing.parts;
  row.totalMs = line.timing.total;
  row.cache = line.x_cache ?? null;
  row.batchSize = line.x_batch_size ?? null;
  row.retryAfterS = line.retry_after ?? null;
  row.retryAfterMs = line.retry_after_ms ?? null;
  row.body = line.body;
  row.error = line.error ?? null;
  row.phase = "done";
  const ticket = line.status === 202 ? line.ticket || line.body : null;
  if (ticket) {
    row.phase = "ticket";
    row.ticket = {
      id: ticket.job_id, position: ticket.position, etaS: ticket.eta_seconds, promisedS: ticket.eta_seconds, ms: null, waitedMs: null,
      inferenceMs: null, status: ticket.status,
    };
  }
}
