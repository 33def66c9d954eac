/** A book as it is shown everywhere: a small cover drawn from its title, and its facts. */

import { el, setVars } from "./shared/dom.js";

/** A number from 0 to `most` - 1 that a text always gets. */
function drawn(text, most) {
  let sum = 7;
  for (const sign of text) sum = (sum * 31 + /** @type {number} */ (sign.codePointAt(0))) % 100_003;
  return sum % most;
}

/** The colour of a category's shelf. */
export const hue = (category) => drawn((category || "").split("/")[0], 360);

/** A cover of our own making, for the eye only: a shelf has its colour, and each of its books a shade of it. */
export function cover(book, size = "") {
  const node = el(`span.cover${size && `.${size}`}`, { "aria-hidden": "true" },
    el("span.cover-title", {}, book.title), el("span.cover-author", {}, (book.author || "").split(/[,·]/)[0]));
  setVars(node, { "--hue": hue(book.category) + drawn(book.title, 71) - 35, "--shade": `${drawn(book.id, 13) - 6}%` });
  return node;
}

/** Author, translator, publisher and year in one line. */
export const facts = (book) => [book.author, book.translator, book.publisher, book.year].filter(Boolean).join(" · ");

/** The text in pieces, those that stand in `words` marked. @returns {(string|HTMLElement)[]} */
export function marked(text, words) {
  const told = (words.normalize("NFC").match(/[\p{L}\p{N}]{2,}/gu) || []).slice(0, 12);
  if (!told.length) return [text];
  const sign = new RegExp(`(${told.map((word) => word.replace(/[^\p{L}\p{N}]/gu, "")).sort((a, b) => b.length - a.length).join("|")})`, "giu");
  return text.split(sign).map((piece, k) => (k % 2 ? el("mark", {}, piece) : piece)).filter(Boolean);
}
