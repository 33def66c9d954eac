/** The numbers of the page as CSV or JSON, with who measured each; the same values that the table shows. */

import { curlOf } from "./api.js";
import { DOORS, fateOf, inferOf, state, topicsOf, waitOf } from "./state.js";
import { summarise } from "./summary.js";
import { verdict } from "./verdict.js";

const PARTS = ["parse", "cache", "admit", "wait", "batch", "tokenize", "infer", "post", "handover", "serialize"];

/** Every row of every run of this crowd, flat. */
export function flat() {
  const runs = DOORS.map((d) => state.runs[d]).filter(Boolean);
  return runs.flatMap((run) => run.rows.map((row) => {
    const top = topicsOf(row)?.[0];
    return {
      door: run.door, no: row.i + 1, review: row.text, status: row.status, outcome: fateOf(row),
      wait_ms: waitOf(row), inference_ms: inferOf(row), round_trip_ms: row.roundTripMs,
      ticket_ms: row.ticket?.ms ?? null, first_topic: top?.id ?? null, first_score: top?.score ?? null,
      x_cache: row.cache, x_batch_size: row.batchSize, retry_after_s: row.retryAfterS,
      retry_after_ms: row.retryAfterMs, server_total_ms: row.totalMs,
      ...Object.fromEntries(PARTS.map((name) => [`part_${name}_ms`, row.parts[name] ?? null])),
      parts_measured_by: "box, Server-Timing",
      round_trip_measured_by: run.clock === "box" ? "box, own loopback client" : "browser",
      started_at: run.startedAt.toISOString(),
    };
  }));
}

/** RFC 4180, with a mark at the front by which spreadsheets know UTF-8. */
export function csv() {
  const lines = flat();
  if (!lines.length) return "";
  const head = Object.keys(lines[0]);
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `\ufeff${[head, ...lines.map((l) => head.map((h) => l[h]))].map((l) => l.map(cell).join(",")).join("\r\n")}\r\n`;
}

export function json() {
  const runs = DOORS.map((d) => state.runs[d]).filter(Boolean);
  const requests = flat();
  return JSON.stringify({
    written_at: new Date().toISOString(), page: location.href, model: state.model,
    runs: runs.map((run) => ({
      door: run.door, started_at: run.startedAt.toISOString(), phase: run.phase, summary: summarise(run),
      sentence: verdict(run),
      requests: run.rows.map((row, k) => ({
        ...requests.find((r) => r.door === run.door && r.no === k + 1),
        parts: row.parts, topics: topicsOf(row), curl: curlOf(run.door, row.text),
      })),
    })),
  }, null, 2);
}

/** Hand a text to the browser as a file. */
export function download(text, kind) {
  const url = URL.createObjectURL(new Blob([text], { type: kind === "csv" ? "text/csv;charset=utf-8" : "application/json" }));
  const link = document.createElement("a");
  const stamp = new Date().toISOString().slice(0, 19).replaceAll(":", "");
  link.href = url;
  link.download = `tailrace-${stamp}.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
