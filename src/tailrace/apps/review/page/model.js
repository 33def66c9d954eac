/** Which model runs, by name and fingerprint, and what its scores mean. */

import { $, el, setText } from "./shared/dom.js";
import { bytes, score } from "./shared/format.js";
import { knows, t } from "./shared/i18n.js";
import { on, state } from "./state.js";

export function startModel() {
  on("model", drawModel);
}

export function drawModel() {
  const m = state.model;
  if (!m) return;
  setText($("model-name"), m.name);
  setText($("model-print"), m.fingerprint ? m.fingerprint.slice(0, 8) : "");
  setText($("lede"), t("lede", { topics: m.topics.length, model: m.name, size: bytes(m.size_bytes), kind: kindOf(m) }));
  const facts = [
    ["model.name", m.name], ["model.source", m.source], ["model.kind", kindOf(m)], ["model.print", m.fingerprint],
    ["model.size", bytes(m.size_bytes)], ["model.quant", m.quantisation || "–"],
    ["model.invariant", t(m.batch_invariant ? "yes.invariant" : "no.invariant")],
    ["model.weak", t("model.weak.text", { limit: score(m.weak_below) })],
  ];
  setText($("limits-weak"), t("limits.weak", { limit: score(m.weak_below) }));
  $("model-facts").replaceChildren(...facts.flatMap(([key, value]) => [
    el("dt", {}, t(key)), el("dd", {}, key === "model.print" ? el("code", {}, value) : value)]));
}

const kindOf = (m) => (knows(`kind.${m.kind}`) ? t(`kind.${m.kind}`) : m.kind);
