/** How the page speaks to the box: addresses, answers, problems, and the curl that does the same. */

import { at, JSON_HEAD } from "./shared/ask.js";

/** The address that a door answers on. */
export const doorPath = (door) => (door === "queue" ? "api/queue/jobs" : `api/${door}/predict`);

/**
 * Fire a whole crowd from inside the box and read one line per finished request.
 * @param {{door: string, texts: string[], fresh: boolean}} crowd
 * @param {(line: any) => void} onLine
 * @param {AbortSignal} signal
 */
export async function fireCrowd(crowd, onLine, signal) {
  const answer = await fetch(at("api/crowd"), {
    method: "POST", headers: JSON_HEAD, body: JSON.stringify(crowd), cache: "no-store", signal,
  });
  if (!answer.ok || !answer.body) {
    let problem = null;
    try { problem = await answer.json(); } catch { /* no problem body: the status says it */ }
    throw new BoxError(answer.status, problem);
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    rest += value || "";
    const lines = rest.split("\n");
    rest = done ? "" : lines.pop() || "";
    for (const line of lines) if (line.trim()) onLine(JSON.parse(line));
    if (done) return;
  }
}

/** The box answered, but not with what was asked for. */
export class BoxError extends Error {
  /** @param {number} status @param {any} problem problem+json, if it sent one */
  constructor(status, problem) {
    super(problem?.detail || problem?.title || `HTTP ${status}`);
    this.status = status;
    this.problem = problem;
  }
}

/** The same request for a shell. Single quotes in the text are closed, escaped and opened again. */
export function curlOf(door, text) {
  const body = JSON.stringify({ text }).replaceAll("'", "'\\''");
  return `curl -si ${at(doorPath(door))} -H 'content-type: application/json' -d '${body}'`;
}

/** How the ticket of a queued request is asked for. */
export const curlOfTicket = (id) => `curl -s ${at(`api/queue/jobs/${id}`)}`;
