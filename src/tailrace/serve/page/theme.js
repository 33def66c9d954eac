/** Light, dark, or as the system has it; the choice is stored. */

import { $ } from "./dom.js";
import { t } from "./i18n.js";

const CHOICES = ["auto", "light", "dark"];
let choice = "auto";

/** @param {() => void} onChange called after the colours have changed */
export function startTheme(onChange) {
  try { choice = localStorage.getItem("tailrace.theme") || "auto"; } catch { /* not stored */ }
  if (!CHOICES.includes(choice)) choice = "auto";
  $("theme").addEventListener("click", () => {
    choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
    try { localStorage.setItem("tailrace.theme", choice); } catch { /* not stored */ }
    put();
    onChange();
  });
  put();
}

function put() {
  if (choice === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  nameTheme();
}

export function nameTheme() {
  $("theme").textContent = t(`theme.${choice}`);
}
