/** One request and all that its answer says of itself: status, body, time by part, when to come back. */

import { parseServerTiming } from "./timing.js";

/** An address of the service, wherever it is mounted. */
export const at = (path) => new URL(path, document.baseURI).href;

export const JSON_HEAD = { "content-type": "application/json" };

const numeric = (head, name) => (head.get(name) === null ? null : Number(head.get(name)));

/** When to come back, as an answer says it. @param {Headers} head */
export const backIn = (head) => ({ retryAfterS: numeric(head, "retry-after"), retryAfterMs: numeric(head, "retry-after-ms") });

/**
 * One request, timed by the browser's own clock from the call to the last byte of the answer.
 * @param {string} path
 * @param {any} [body] posted if given: a Blob as it is, anything else as JSON
 * @param {AbortSignal} [signal]
 */
export async function ask(path, body, signal) {
  const from = performance.now();
  const answer = await fetch(at(path), {
    method: body === undefined ? "GET" : "POST",
    headers: body === undefined || body instanceof Blob ? {} : JSON_HEAD,
    body: body === undefined || body instanceof Blob ? body : JSON.stringify(body),
    cache: "no-store",
    signal,
  });
  const text = await answer.text();
  const roundTripMs = performance.now() - from;
  let json = null;
  try { json = JSON.parse(text); } catch { /* not JSON: a proxy's page, shown by its status */ }
  const head = answer.headers;
  return {
    status: answer.status,
    roundTripMs,
    body: json,
    timing: parseServerTiming(head.get("server-timing")),
    cache: head.get("x-cache"),
    batchSize: numeric(head, "x-batch-size"),
    ...backIn(head),
    location: head.get("location"),
  };
}
