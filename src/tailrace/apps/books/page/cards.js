/** A recommended book with its reasons, as they come or as they were kept. */

import { cover, facts } from "./book.js";
import { el, setText } from "./shared/dom.js";
import { t } from "./shared/i18n.js";

let follow = (_) => {};
/** @param {(title: string) => void} fn called when somebody wants to search for a card's book */
export const onCardFollowed = (fn) => { follow = fn; };

/**
 * @param {any} card
 * @param {boolean} writing  whether its reasons may still come
 * @returns {{node: HTMLElement, add: (kind: string, text: string) => void, done: (kind: string, text: string|null) => void, end: () => void}}
 */
export function cardOf(card, writing) {
  const texts = { short: el("p.reason.short"), long: el("p.reason.long") };
  const mark = el("p.card-mark", { hidden: true });
  const find = el("button.small", { type: "button" }, t("card.find"));
  find.addEventListener("click", () => follow(card.title));
  const node = el("li.card", { "data-card": card.card_id },
    cover(card, "small"),
    el("div.card-about", {},
      el("h4", {}, card.title), el("p.muted", {}, facts(card)),
      texts.short, texts.long, mark, el("p.card-acts", {}, find)));

  const show = (kind, text, state) => {
    setText(texts[kind], text || "");
    texts[kind].dataset.state = state;
    texts[kind].hidden = !text && state !== "waits";
  };
  for (const kind of ["short", "long"]) {
    const text = card[`reason_${kind}`];
    show(kind, text, text ? "done" : writing ? "waits" : "none");
  }
  const end = () => {
    for (const kind of ["short", "long"]) {
      const node_ = texts[kind];
      if (node_.dataset.state === "writes") node_.dataset.state = "unfinished";
      if (node_.dataset.state === "waits") show(kind, "", "none");
    }
    const states = [texts.short.dataset.state, texts.long.dataset.state];
    const key = states.includes("unfinished") ? "card.unfinished" : states[0] === "none" ? "card.bare" : states[1] === "none" ? "card.short" : "";
    mark.hidden = !key;
    node.dataset.mark = key.replace("card.", "");
    if (key) setText(mark, t(key));
  };
  if (!writing) end();
  return {
    node,
    add(kind, text) {
      texts[kind].dataset.state = "writes";
      texts[kind].hidden = false;
      texts[kind].append(text);
    },
    done: (kind, text) => show(kind, text, text ? "done" : "none"),
    end,
  };
}
