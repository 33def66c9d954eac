/** Being refused and coming back when one was told to, not before, and not for ever. */

const TRIES_MAX = 5;
const UNTOLD_MS = 2000;

/** Whether an answer says to come back. */
export const refusedFor = (answer) => (answer.status === 429 || answer.status === 503 ? waitOf(answer) : null);

function waitOf({ retryAfterMs, retryAfterS }) {
  return retryAfterMs ?? (retryAfterS === null || retryAfterS === undefined ? UNTOLD_MS : retryAfterS * 1000);
}

/**
 * Ask until it is not refused, or too often.
 * @template {{status: number}} A
 * @param {() => Promise<A>} attempt
 * @param {(refusal: A & {ms: number, until: number}) => void} refused  called with each time to come back
 * @param {() => void} asking  called when that time has come
 * @param {AbortSignal} signal
 * @returns {Promise<A>}
 */
export async function patiently(attempt, refused, asking, signal) {
  for (let tries = 1; ; tries += 1) {
    const answer = await attempt();
    const ms = refusedFor(answer);
    if (ms === null || tries === TRIES_MAX) return answer;
    refused({ ...answer, ms, until: performance.now() + ms });
    await pause(ms, signal);
    asking();
  }
}

const pause = (ms, signal) => new Promise((resolve, reject) => {
  const left = () => { clearTimeout(timer); reject(signal.reason); };
  const timer = setTimeout(() => { signal.removeEventListener("abort", left); resolve(undefined); }, ms);
  signal.addEventListener("abort", left, { once: true });
});
