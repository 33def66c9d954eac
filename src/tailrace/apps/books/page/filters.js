/** The words and filters that somebody fills in, and the examples to begin with. */

import { asked, narrowed } from "./asked.js";
import { search, seen } from "./search.js";
import { onTyping } from "./typing.js";
import { $, el } from "./shared/dom.js";
import { count } from "./shared/format.js";
import { t } from "./shared/i18n.js";
import { enterHits } from "./hits.js";

const EXAMPLES = 5;
const NOTHING = { category: "", author: "", year_from: "", year_to: "", page: 1 };
const FIELDS = ["q", "author", "year_from", "year_to"];
/** @type {Record<string, number>} */
let categories = {};

export function startFilters() {
  for (const name of FIELDS) {
    onTyping($(name), (text, now) => {
      const same = asked[name].trim() === text.trim();
      asked[name] = name.startsWith("year") ? text.replace(/\D/g, "") : text;
      if (same && !now) return;
      asked.page = 1;
      look();
    });
  }
  $("category").addEventListener("change", () => { asked.category = $("category").value; asked.page = 1; look(); });
  $("clear").addEventListener("click", () => {
    Object.assign(asked, NOTHING);
    fill();
    look();
    $("q").focus();
  });
  $("search").addEventListener("submit", (event) => {
    event.preventDefault();
    Object.assign(asked, { q: $("q").value, page: 1 });
    look();
  });
  $("q").addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && !event.isComposing) { event.preventDefault(); enterHits(); }
  });
  fill();
}

/** Search for these words anew: on one shelf where one is named, and else on all. */
export function lookFor(words, shelf = "") {
  Object.assign(asked, NOTHING, { q: words, category: shelf });
  fill();
  look();
}

function look() {
  drawFilters();
  search();
}

/** Put what is asked into the fields. */
export function fill() {
  for (const name of FIELDS) if ($(name).value !== asked[name]) $(name).value = asked[name];
  $("category").value = asked.category;
  drawFilters();
}

export function drawFilters() {
  $("clear").hidden = !narrowed();
  const begun = Boolean(asked.q.trim()) || seen.phase !== "idle";
  for (const id of ["examples", "bookcase", "promise"]) $(id).hidden = begun;
}

/** @param {Record<string, number>} known  how many books each category has, by path */
export function knowCategories(known) {
  categories = known;
  drawCategories();
}

/** The categories as a list of two levels, in the order of their names. */
export function drawCategories() {
  /** @type {Map<string, [string, number][]>} */
  const shelves = new Map();
  for (const [path, books] of Object.entries(categories)) {
    const top = path.split("/")[0];
    shelves.set(top, [...(shelves.get(top) || []), [path, books]]);
  }
  const tops = [...shelves].sort(([a], [b]) => a.localeCompare(b, "ko"));
  const options = tops.map(([top, below]) => {
    const all = below.reduce((sum, [, books]) => sum + books, 0);
    const own = below.filter(([path]) => path !== top).sort(([a], [b]) => a.localeCompare(b, "ko"));
    const name = (path, books) => t("category.of", { name: path, n: count(books) });
    return [el("option", { value: top }, name(top, all)),
      ...own.map(([path, books]) => el("option", { value: path }, `\u2003${name(path.slice(top.length + 1), books)}`))];
  });
  $("category").replaceChildren(el("option", { value: "" }, t("category.all")), ...options.flat());
  $("category").value = asked.category;
  if (asked.category && $("category").value !== asked.category) {
    $("category").append(el("option", { value: asked.category }, asked.category));
    $("category").value = asked.category;
  }
}

export function drawExamples() {
  $("examples").replaceChildren(...Array.from({ length: EXAMPLES }, (_, k) => {
    const words = t(`example.${k + 1}`);
    const button = el("button.example", { type: "button" }, words);
    button.addEventListener("click", () => { lookFor(words); $("q").focus(); });
    return el("li", {}, button);
  }));
}
