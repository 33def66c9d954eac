/**
 * The four clocks of a turn beside their limits, as this page sees them from its events: input until the first
 * word, generation from the first to the last, the gap between two, and the whole.
 */

import { el, setText, setVars } from "./shared/dom.js";
import { t } from "./shared/i18n.js";

const NAMES = ["input", "generation", "idle", "total"];
const EVERY_MS = 100;
const seconds = (ms) => (ms / 1000).toFixed(1);

export class Clocks {
  /** @param {Record<string, number>|undefined} limits  seconds, named as the service names them */
  constructor(limits) {
    this.limits = limits || {};
    /** @type {Record<string, number>} when the clocks that run were started */
    this.from = {};
    /** @type {Record<string, number>} what the others came to, in milliseconds */
    this.came = {};
    this.timer = 0;
    this.broken = "";
    this.rows = Object.fromEntries(NAMES.map((name) => [name, {
      bar: el("span.clock-bar", { "aria-hidden": "true" }), text: el("span.clock-text"), node: el("div.clock", { "data-clock": name }),
    }]));
    this.node = el("div.clocks", { role: "group" });
    this.words();
  }

  /** Put the words of the language on it. */
  words() {
    this.node.setAttribute("aria-label", t("clocks"));
    for (const name of NAMES) {
      const { node, bar, text } = this.rows[name];
      node.replaceChildren(el("span.clock-name", {}, t(`clock.${name}`)), bar, text);
    }
    this.node.replaceChildren(...NAMES.map((name) => this.rows[name].node));
    this.draw();
  }

  begin() {
    this.from = { total: performance.now(), input: performance.now() };
    this.timer = setInterval(() => this.draw(), EVERY_MS);
    this.draw();
  }

  /** An event has come. @param {string} name @param {any} body */
  event(name, body) {
    const now = performance.now();
    if (name === "spec") this.stop("input");
    if (name === "cards" && body.cards.length && !body.degraded.some((code) => code === "llm-off" || code === "no-reasons")) {
      this.from.input = now;
    }
    if (/^(short|long)\./.test(name)) {
      this.stop("input");
      this.from.generation ??= now;
      this.stop("idle");
      this.from.idle = now;
    }
  }

  /** A clock stands still at the most that it has come to. */
  stop(name) {
    if (this.from[name] === undefined) return;
    this.came[name] = Math.max(this.came[name] || 0, performance.now() - this.from[name]);
    delete this.from[name];
  }

  /** @param {string} [stage]  the one that broke @param {boolean} [late]  because its time was up, by the service's clock */
  end(stage, late) {
    for (const name of NAMES) this.stop(name);
    if (stage && late) this.came[stage] = Math.max(this.came[stage] || 0, 1000 * (this.limits[`${stage}_s`] || 0));
    clearInterval(this.timer);
    this.broken = stage || "";
    this.draw();
  }

  draw() {
    const now = performance.now();
    for (const name of NAMES) {
      const { node, bar, text } = this.rows[name];
      const runs = this.from[name] !== undefined;
      const ms = runs ? now - this.from[name] : this.came[name];
      const limit = this.limits[`${name}_s`];
      node.dataset.state = this.broken === name ? "broken" : runs ? "runs" : ms === undefined ? "rests" : "stands";
      setVars(bar, { "--share": ms && limit ? Math.min(1, ms / 1000 / limit) : 0 });
      setText(text, t(limit ? "clock.of" : "clock.alone", { s: ms === undefined ? "–" : seconds(ms), most: limit ?? "" }));
    }
  }
}
