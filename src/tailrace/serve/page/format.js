/** Numbers as people read them, in the language of the page. Knows nothing of runs or doors. */

import { language, t } from "./i18n.js";

const cache = new Map();
function number(value, min, max) {
  const key = `${language()} ${min} ${max}`;
  if (!cache.has(key)) {
    cache.set(key, new Intl.NumberFormat(language(), { minimumFractionDigits: min, maximumFractionDigits: max }));
  }
  return cache.get(key).format(value);
}

/** Milliseconds for a table cell, without unit: one decimal below ten. */
export function ms(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return value < 9.95 ? number(value, 1, 1) : number(value, 0, 0);
}

/** A duration for a sentence: "4 ms", "0.62 s", "12.4 s". */
export function duration(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value < 9.95) return t("unit.ms", { n: number(value, 0, 1) });
  if (value < 99.5) return t("unit.ms", { n: number(value, 0, 0) });
  const s = value / 1000;
  return t("unit.s", { n: s < 9.995 ? number(s, 2, 2) : number(s, 1, 1) });
}

/** A mark on the time axis, with as few digits as it needs. */
export function mark(value) {
  return value < 100 ? t("unit.ms", { n: number(value, 0, 1) }) : t("unit.s", { n: number(value / 1000, 0, 2) });
}

/** Seconds without a unit, for a heading: "0.3", "1". */
export const seconds = (value) => number(value, 0, value < 0.95 ? 2 : 1);

/** Bytes in binary units, as memory limits are set. */
export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const mib = value / 2 ** 20;
  return mib < 1000 ? `${number(mib, 0, 0)}\u00a0MiB` : `${number(mib / 1024, 2, 2)}\u00a0GiB`;
}

export const count = (value) => number(value, 0, 0);
export const score = (value) => value.toFixed(2);
export const ratio = (value) => number(value, 1, 1);

/** A time of day with seconds. @param {Date} date */
export const clock = (date) => date.toLocaleTimeString(language(), { hour12: false });
