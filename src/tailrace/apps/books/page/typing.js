/**
 * When somebody who types is to be answered. Between two letters a moment is waited. While an input method
 * composes, as for Korean, a longer one, and never for a letter that is no syllable yet; Enter does not wait.
 */

const QUIET_MS = 160;
const COMPOSING_MS = 420;
const JAMO = /[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\ud7b0-\ud7ff]+$/;

/** The text without the unfinished syllable at its end. */
export const settled = (text) => text.replace(JAMO, "");

/**
 * @param {HTMLInputElement|HTMLTextAreaElement} input
 * @param {(text: string, now: boolean) => void} tell  the text as far as it is settled; `now` after Enter
 */
export function onTyping(input, tell) {
  let timer = 0;
  let composing = false;
  let entered = false;

  const later = (ms) => {
    clearTimeout(timer);
    timer = setTimeout(() => tell(composing ? settled(input.value) : input.value, false), ms);
  };
  const now = () => {
    clearTimeout(timer);
    tell(input.value, true);
  };
  input.addEventListener("compositionstart", () => { composing = true; });
  input.addEventListener("compositionend", () => {
    composing = false;
    if (entered) { entered = false; now(); } else later(QUIET_MS);
  });
  input.addEventListener("input", (event) => later(/** @type {InputEvent} */ (event).isComposing ? COMPOSING_MS : QUIET_MS));
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey) return;
    // The Enter that ends a composition is not yet the text's: wait for the input method to hand it over.
    if (event.isComposing || composing) { entered = true; return; }
    event.preventDefault();
    now();
  });
  return { now };
}
