/** The shelves of the catalogue as spines on a board: a way in for somebody without a word to look for. */

import { hue } from "./book.js";
import { $, el, setVars } from "./shared/dom.js";
import { count } from "./shared/format.js";

const SHORTEST = 0.62;
/** @type {[string, number][]} shelves with their books */
let shelves = [];
let choose = (_) => {};

/** @param {(shelf: string) => void} fn called when a shelf is chosen */
export const onShelf = (fn) => { choose = fn; };

/** @param {Record<string, number>} categories  how many books each has, by path */
export function knowShelves(categories) {
  /** @type {Map<string, number>} */
  const tops = new Map();
  for (const [path, books] of Object.entries(categories)) {
    const [top] = path.split("/");
    tops.set(top, (tops.get(top) || 0) + books);
  }
  shelves = [...tops].sort(([a], [b]) => a.localeCompare(b, "ko"));
  drawBookcase();
}

export function drawBookcase() {
  const most = Math.max(1, ...shelves.map(([, books]) => books));
  $("bookcase").replaceChildren(...shelves.map(([shelf, books]) => {
    const spine = el("button.spine", { type: "button" },
      el("span.spine-name", {}, shelf), " ", el("span.spine-count", {}, count(books)));
    setVars(spine, { "--hue": hue(shelf), "--tall": SHORTEST + (1 - SHORTEST) * Math.sqrt(books / most) });
    spine.addEventListener("click", () => choose(shelf));
    return el("li", {}, spine);
  }));
}
