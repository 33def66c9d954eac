/** What went wrong, in the words of the page; where it has none, in the service's own. */

import { knows, t } from "./shared/i18n.js";

/** @param {{status: number, body: any}} answer */
export function problemText(answer) {
  if (answer.status === 0) return t("problem.gone");
  const code = answer.body?.code;
  if (code && knows(`problem.${code}`)) return t(`problem.${code}`);
  return t("problem.other", { status: answer.status, detail: answer.body?.detail || answer.body?.title || "" });
}

/** Why an answer or a turn is less than was asked for. */
export function degradedText(code) {
  const [before, rest] = [code.split("-", 1)[0], code.slice(code.indexOf("-") + 1)];
  const keys = [`degraded.${code}`];
  if (before === "search") keys.push(`degraded.${rest}`);
  if (before === "spec" || before === "llm") keys.push(`degraded.${before}`);
  const known = keys.find(knows);
  return known ? t(known) : t("degraded.other", { code });
}
