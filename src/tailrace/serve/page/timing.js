/**
 * Reading the Server-Timing header, and what kind of time each part is. The one place that knows the
 * names of the parts.
 */

/** Which kind a part is drawn as. @type {Record<string, "wait"|"infer"|"rest">} */
const KINDS = { wait: "wait", infer: "infer" };

/**
 * @param {string|null|undefined} header
 * @returns {{parts: Record<string, number>, total: number|null}} milliseconds, in the order sent
 */
export function parseServerTiming(header) {
  /** @type {Record<string, number>} */
  const parts = {};
  let total = null;
  for (const entry of (header || "").split(",")) {
    const [name, ...params] = entry.trim().split(";");
    const dur = params.map((p) => p.trim()).find((p) => p.startsWith("dur="));
    if (!name || !dur) continue;
    const value = Number(dur.slice(4));
    if (name === "total") total = value;
    else parts[name] = (parts[name] || 0) + value;
  }
  return { parts, total };
}

/**
 * The pieces of a band in the order in which they happened.
 * @param {Record<string, number>} parts
 * @returns {{kind: "wait"|"infer"|"rest", name: string, from: number, length: number}[]}
 */
export function pieces(parts) {
  let at = 0;
  return Object.entries(parts).map(([name, length]) => {
    const piece = { kind: KINDS[name] || "rest", name, from: at, length };
    at += length;
    return piece;
  });
}
