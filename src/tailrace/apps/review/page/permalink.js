/** The address of a crowd: door, how many, which seed, which language. Typed reviews stay on the page. */

import { language, onLanguage } from "./shared/i18n.js";
import { DOORS, on, state } from "./state.js";

export function readLink() {
  const p = new URLSearchParams(location.hash.slice(1));
  const door = p.get("door");
  if (DOORS.includes(/** @type {any} */ (door))) state.door = /** @type {any} */ (door);
  const n = Number(p.get("n"));
  if (Number.isInteger(n) && n >= 1 && n <= 60) {
    state.size = n === 1 || n === 12 ? n : "n";
    if (state.size === "n") state.n = n;
  }
  const seed = Number(p.get("seed"));
  if (Number.isInteger(seed) && seed > 0) state.seed = seed;
  return p.get("lang") || undefined;
}

export function startLink() {
  on("choice", write);
  onLanguage(write);
  write();
}

export const linkNow = () => {
  const n = state.size === "n" ? state.n : state.size;
  return `#door=${state.door}&n=${n}&seed=${state.seed}&lang=${language()}`;
};

function write() {
  history.replaceState(null, "", linkNow());
}
