/**
 * What the page knows, in one place: the choice of the guest, the runs so far, the latest stats of the
 * box. Modules read it and are told when it changes; nobody else keeps a copy.
 */

/** @typedef {"naive"|"limited"|"batched"|"queue"} Door */
/** @type {Door[]} */
export const DOORS = ["naive", "limited", "batched", "queue"];
/** The number that a door carries on the page. */
export const SIGN = { naive: "①", limited: "②", batched: "③", queue: "④" };

/**
 * @typedef {Object} Row one request of a run
 * @property {number} i
 * @property {string} text
 * @property {"sent"|"ticket"|"done"} phase
 * @property {number} status 0 until answered
 * @property {number|null} roundTripMs
 * @property {number} sentMs
 * @property {Record<string, number>} parts milliseconds by part, as the box told them
 * @property {number|null} totalMs the box's own sum
 * @property {string|null} cache
 * @property {number|null} batchSize
 * @property {number|null} retryAfterS
 * @property {number|null} retryAfterMs
 * @property {any} body
 * @property {string|null} error what the client says of a call that got no answer
 * @property {{id: string, position: number, etaS: number|null, promisedS: number|null, ms: number|null, waitedMs: number|null,
 *   inferenceMs: number|null, status: string}|null} ticket
 */

/**
 * @typedef {Object} Run one crowd through one door
 * @property {number} id
 * @property {Door} door
 * @property {string} crowd which crowd this was: runs of one crowd may be compared
 * @property {"box"|"browser"} clock who measured the round trips
 * @property {Date} startedAt
 * @property {number} t0 performance.now() at the start
 * @property {"running"|"done"|"stopped"|"failed"} phase
 * @property {Row[]} rows
 * @property {number|null} rssPeak
 * @property {number|null} rssLimit
 * @property {Error|null} error
 */

export const state = {
  /** @type {Door} */ door: "limited",
  /** @type {1|12|"n"} */ size: /** @type {any} */ (12),
  n: 24,
  seed: 7,
  /** @type {"examples"|"typed"} */ source: "examples",
  typed: "",
  /** @type {Run|null} the run in the table */ run: null,
  /** @type {Partial<Record<Door, Run>>} the latest run of this crowd through each door */ runs: {},
  ghosts: true,
  paused: false,
  /** @type {{at: number, total: number}|null} */ replay: null,
  /** @type {Set<number>} rows whose detail is open */ open: new Set(),
  /** @type {any} */ stats: null,
  /** @type {any} */ model: null,
  /** @type {"starting"|"live"|"polling"|"gone"|"hidden"} */ link: "starting",
  ready: false,
};

const listeners = new Map();

/** @param {string} what "choice", "run", "row", "stats", "link", "model" @param {(detail?: any) => void} fn */
export function on(what, fn) {
  if (!listeners.has(what)) listeners.set(what, new Set());
  listeners.get(what).add(fn);
}

/** Say that something has changed. */
export function tell(what, detail) {
  for (const fn of listeners.get(what) || []) fn(detail);
}

export const busy = () => state.run?.phase === "running" || state.replay !== null;

/** How many come. */
export const size = () => (state.size === "n" ? state.n : state.size);

/** @returns {Row} */
export function newRow(i, text) {
  return {
    i, text, phase: "sent", status: 0, roundTripMs: null, sentMs: 0, parts: {}, totalMs: null, cache: null,
    batchSize: null, retryAfterS: null, retryAfterMs: null, body: null, error: null, ticket: null,
  };
}

/** When this request was over, in milliseconds after it was sent; null while it is not. */
export function endOf(row) {
  if (row.phase !== "done") return null;
  return row.ticket?.ms ?? row.roundTripMs;
}

export const waitOf = (row) => (row.ticket ? row.ticket.waitedMs : row.parts.wait ?? null);
export const inferOf = (row) => (row.ticket ? row.ticket.inferenceMs : row.parts.infer ?? null);
export const topicsOf = (row) => row.body?.topics ?? row.body?.result?.topics ?? null;

/** What became of a request. @returns {"sent"|"ticket"|"answered"|"refused"|"timeout"|"killed"|"failed"} */
export function fateOf(row) {
  if (row.phase !== "done") return row.phase;
  if (row.status === 429) return "refused";
  if (row.status === 503 && /timeout/.test(row.body?.code || "timeout")) return "timeout";
  if (row.status === 502) return "killed";
  if (row.ticket) return row.ticket.status === "done" ? "answered" : "failed";
  return row.status === 200 ? "answered" : "failed";
}
