/** A time to come back that runs down: a bar, and seconds in words. Asks nobody; whoever waits does that. */

import { el, setText, setVars } from "./shared/dom.js";
import { t } from "./shared/i18n.js";

const EVERY_MS = 100;

/**
 * @param {number} until  on performance.now's clock
 * @param {number} whole  milliseconds of the whole wait
 * @param {() => string} over  what is said when the time has come
 */
export function countdown(until, whole, over) {
  const bar = el("span.countdown-bar", { "aria-hidden": "true" });
  const text = el("span");
  const node = el("p.countdown", {}, bar, text);
  const draw = () => {
    const left = Math.max(0, until - performance.now());
    setVars(bar, { "--left": whole ? left / whole : 0 });
    setText(text, left ? t("refused.back", { s: (Math.ceil(left / 100) / 10).toFixed(1) }) : over());
    if (!left) stop();
  };
  const timer = setInterval(draw, EVERY_MS);
  const stop = () => clearInterval(timer);
  draw();
  return { node, stop };
}
