/** The neighbours of a book: asked for when they are wanted, once. */

import { cover, facts } from "./book.js";
import { ask } from "./shared/ask.js";
import { el } from "./shared/dom.js";
import { t } from "./shared/i18n.js";
import { problemText } from "./problem.js";

const SIZE = 6;
let follow = (_) => {};

/** @param {(title: string) => void} fn called when a neighbour is followed */
export const onFollow = (fn) => { follow = fn; };

/** A button that shows the neighbours of `book` in `under`, or puts them away. */
export function neighbours(book, under) {
  const button = el("button.small", { type: "button", "data-do": "similar", "aria-expanded": "false" }, t("similar"));
  button.addEventListener("click", async () => {
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(open));
    under.querySelector(".near")?.remove();
    if (!open) return;
    const near = el("div.near", {}, el("p.muted", {}, t("similar.asking")));
    under.append(near);
    near.replaceChildren(...(await found(book)));
  });
  return button;
}

async function found(book) {
  let answer;
  try {
    answer = await ask(`api/books/${encodeURIComponent(book.id)}/similar?size=${SIZE}`);
  } catch {
    answer = { status: 0, body: null };
  }
  if (answer.status !== 200) return [el("p.muted", {}, problemText(answer))];
  if (!answer.body.hits.length) return [el("p.muted", {}, t("similar.none"))];
  return [el("ul.near-list", { "aria-label": t("similar.of", { title: book.title }) }, ...answer.body.hits.map(({ document, score }) => {
    const link = el("button.near-one", { type: "button" },
      cover(document, "little"),
      el("span.near-text", {}, el("b", {}, document.title), el("span.muted", {}, facts(document)), el("span.muted", {}, t("similar.score", { score: score.toFixed(3) }))));
    link.addEventListener("click", () => follow(document.title));
    return el("li", {}, link);
  }))];
}
