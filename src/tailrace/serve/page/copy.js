/** Copying text, and saying so. Without a clipboard (plain http on a network) it says that instead. */

import { t } from "./i18n.js";
import { say, toast } from "./announce.js";

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast(t("copied"));
  } catch {
    toast(t("copy.failed"));
  }
  say(t("copied"));
}
