/** What went wrong, in the words of the page; where it has none, in the service's own. */

import { knows, t } from "./shared/i18n.js";

/** @param {{status: number, body: any}} answer */
export function problemText(answer) {
  if (answer.status === 0) return t("problem.gone");
  const code = answer.body?.code;
  if (code && knows(`problem.${code}`)) return t(`problem.${code}`);
  return t("problem.other", { status: answer.status, detail: answer.body?.detail || answer.body?.title || "" });
}

/** Why an answer is less than was asked for. */
export function degradedText(code) {
  const plain = code.replace(/^(search|llm|spec)-/, "");
  for (const key of [`degraded.${code}`, `degraded.${plain}`]) if (knows(key)) return t(key);
  return t("degraded.other", { code });
}
