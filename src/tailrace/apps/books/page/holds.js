/** What the service is: books, model, how turns are made. Asked once when the page starts. */

import { ask } from "./shared/ask.js";
import { $, setText } from "./shared/dom.js";
import { count } from "./shared/format.js";
import { t } from "./shared/i18n.js";

const PRINT = 8;
/** @type {any} */
export let stats = null;

/** @returns {Promise<any>} the numbers, or null where there is no answer */
export async function askStats() {
  try {
    const answer = await ask("api/books/stats");
    stats = answer.status === 200 ? answer.body : null;
  } catch {
    stats = null;
  }
  drawHolds();
  return stats;
}

export function drawHolds() {
  setText($("holds"), stats ? t("holds", { n: count(stats.documents) }) : "");
  const space = stats?.spaces.find((one) => one.state === "active");
  setText($("model-name"), space ? space.model : "");
  setText($("space"), space ? space.fingerprint.slice(0, PRINT) : "");
}
