/** Single-key shortcuts, which can be switched off (WCAG 2.1.4); the choice is stored. */

import { $ } from "./dom.js";

let enabled = true;

/** @param {Record<string, () => void>} actions by key */
export function startKeys(actions) {
  try { enabled = localStorage.getItem("tailrace.keys") !== "off"; } catch { /* not stored */ }
  const box = $("keys-on");
  box.checked = enabled;
  box.addEventListener("change", () => {
    enabled = box.checked;
    try { localStorage.setItem("tailrace.keys", enabled ? "on" : "off"); } catch { /* not stored */ }
  });
  document.addEventListener("keydown", (event) => {
    if (!enabled || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.closest("textarea, select, dialog[open], input:not([type=radio]):not([type=checkbox])")) return;
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  const dialog = $("help");
  $("help-open").addEventListener("click", () => dialog.showModal());
  $("help-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
}
