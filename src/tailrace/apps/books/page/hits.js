/** The list of hits: each a book, with the ranks of both legs and its neighbours on demand. */

import { asked, SIZE } from "./asked.js";
import { cover, facts, marked } from "./book.js";
import { legsOf } from "./legs.js";
import { seen } from "./search.js";
import { neighbours } from "./similar.js";
import { $, el } from "./shared/dom.js";
import { t } from "./shared/i18n.js";

/** Hits whose legs are shown, by id; `all` shows every one. */
const opened = new Set();
let all = false;
let drawn = null;

export function startHits() {
  $("legs").addEventListener("change", () => { all = $("legs").checked; opened.clear(); drawHits(true); });
  $("hits").addEventListener("keydown", walk);
}

export function toggleLegs() { $("legs").click(); }

/** @param {boolean} [again] although the answer is the one that is drawn */
export function drawHits(again = false) {
  const answer = seen.answer?.body;
  $("results").setAttribute("aria-busy", String(seen.phase === "asking"));
  if (!again && drawn === answer) return;
  if (drawn !== answer && drawn?.q !== answer?.q) opened.clear();
  drawn = answer;
  const hits = answer?.hits || [];
  $("hits").start = answer ? (answer.page - 1) * SIZE + 1 : 1;
  $("hits").replaceChildren(...hits.map((hit) => row(hit, answer)));
}

function row(hit, answer) {
  const book = hit.document;
  const best = Math.max(...answer.hits.map((one) => one.score));
  const under = el("div.under");
  const showLegs = () => {
    const open = all !== opened.has(hit.id);
    why.setAttribute("aria-expanded", String(open));
    under.querySelector(".legs")?.remove();
    if (open) under.prepend(legsOf(hit, answer.fusion, best));
  };
  const why = el("button.small", { type: "button", "data-do": "legs", "aria-expanded": "false" }, t("legs.one"));
  why.addEventListener("click", () => {
    if (!opened.delete(hit.id)) opened.add(hit.id);
    showLegs();
  });
  const near = neighbours(book, under);
  const node = el("li.hit", { "data-id": hit.id },
    cover(book),
    el("div.about", {},
      el("h3", { id: `hit-${hit.rank}` }, el("span.rank", {}, String(hit.rank)), el("span", {}, ...marked(book.title, asked.q))),
      book.subtitle ? el("p.subtitle", {}, book.subtitle) : null,
      el("p.facts", {}, el("span", {}, ...marked(facts(book), asked.q)), book.category ? el("span.shelf", {}, book.category) : null),
      book.description ? el("p.description", {}, ...marked(book.description, asked.q)) : null,
      el("p.acts", {}, why, near)),
    under);
  for (const button of [why, near]) button.setAttribute("aria-describedby", `hit-${hit.rank}`);
  showLegs();
  return node;
}

/** Arrow keys go from hit to hit. */
function walk(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const here = event.target.closest(".hit");
  if (!here) return;
  event.preventDefault();
  const next = step > 0 ? here.nextElementSibling : here.previousElementSibling;
  if (next) next.querySelector("button").focus();
  else if (step < 0) $("q").focus();
}

/** Go into the list from above. */
export function enterHits() { $("hits").querySelector("button")?.focus(); }
