/** What is looked for: words, filters, page. It stands in the address, so that a search can be sent on. */

import { language, onLanguage } from "./shared/i18n.js";

export const SIZE = 10;
const NARROW = ["category", "author", "year_from", "year_to"];

/** @type {{q: string, category: string, author: string, year_from: string, year_to: string, page: number}} */
export const asked = { q: "", category: "", author: "", year_from: "", year_to: "", page: 1 };

/** Read the address. @returns {string|undefined} the language it names */
export function readAddress() {
  const said = new URLSearchParams(location.hash.slice(1));
  asked.q = said.get("q") || "";
  for (const name of NARROW) asked[name] = said.get(name) || "";
  for (const name of ["year_from", "year_to"]) if (!/^\d{0,4}$/.test(asked[name])) asked[name] = "";
  const page = Number(said.get("page"));
  asked.page = Number.isInteger(page) && page > 0 ? page : 1;
  return said.get("lang") || undefined;
}

/** Everything that is not as it is at the start. */
function given() {
  const said = new URLSearchParams();
  for (const name of ["q", ...NARROW]) if (asked[name].trim()) said.set(name, asked[name].trim());
  if (asked.page > 1) said.set("page", String(asked.page));
  return said;
}

export function writeAddress() {
  const said = given();
  said.set("lang", language());
  history.replaceState(null, "", `#${said}`);
}

export const startAddress = () => onLanguage(writeAddress);

export const narrowed = () => NARROW.some((name) => asked[name].trim());

/** The address of the search itself. */
export function searchPath() {
  const said = given();
  said.set("size", String(SIZE));
  return `api/books/search?${said}`;
}
