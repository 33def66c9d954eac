/**
 * Words in Korean and English. Every entry is a whole sentence or a whole label with {holes} for
 * numbers and names; nothing here or elsewhere joins pieces into a sentence, because Korean particles
 * depend on the sound before them.
 */

const LANGUAGES = ["ko", "en"];
/** @type {Record<string, Record<string, string>>} */
const books = {};
let current = "ko";
const listeners = new Set();

export const language = () => current;

/** Where words are: those of every page, then the page's own. */
const places = [import.meta.url];

/**
 * @param {string} page  the page's own script, beside whose folder i18n its words are
 * @param {string} [wanted]  the language that the address names, before what is stored or preferred
 */
export async function startLanguage(page, wanted) {
  places[1] = page;
  const stored = read();
  const preferred = (navigator.languages || [navigator.language]).map((l) => l.slice(0, 2));
  const choice = [wanted, stored, ...preferred].find((l) => LANGUAGES.includes(l));
  await setLanguage(choice || "ko");
}

/** Load the words of one language and put them on the page. */
export async function setLanguage(lang) {
  if (!books[lang]) {
    const answers = await Promise.all(places.map((place) => fetch(new URL(`i18n/${lang}.json`, place))));
    books[lang] = Object.assign({}, ...(await Promise.all(answers.map((answer) => answer.json()))));
  }
  current = lang;
  try { localStorage.setItem("tailrace.lang", lang); } catch { /* private mode: not stored */ }
  document.documentElement.lang = lang;
  apply(document);
  for (const fn of listeners) fn();
}

/** Call `fn` whenever the language has changed. */
export const onLanguage = (fn) => listeners.add(fn);

/**
 * @param {string} key
 * @param {Record<string, string|number>} [holes] already formatted
 */
export function t(key, holes = {}) {
  const text = books[current]?.[key];
  if (text === undefined) return key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in holes ? String(holes[name]) : whole));
}

/** Whether the current language knows a key. */
export const knows = (key) => books[current]?.[key] !== undefined;

/** Fill every element that names its words in data-t (text) or data-t-* (an attribute). */
export function apply(root) {
  for (const node of root.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const attr of ["aria-label", "title", "placeholder"]) {
    for (const node of root.querySelectorAll(`[data-t-${attr}]`)) {
      node.setAttribute(attr, t(node.getAttribute(`data-t-${attr}`)));
    }
  }
}

function read() {
  try { return localStorage.getItem("tailrace.lang"); } catch { return null; }
}
