/** How one hit came to its place: rank and score of each leg, and what each adds to the fused score. */

import { el, setVars } from "./shared/dom.js";
import { count } from "./shared/format.js";
import { t } from "./shared/i18n.js";

const LEGS = ["keyword", "vector"];
const exact = (value) => value.toFixed(value < 10 ? 4 : 2);

/** What a leg adds: weight / (k + rank), with ranks from 1; see search/fuse.py. */
const share = (fusion, found) => (found ? found.weight / (fusion.k + found.rank) : 0);

/**
 * @param {any} hit
 * @param {any} fusion  the constants of the answer
 * @param {number} best  the score of the first hit of the page: the bar's full length
 */
export function legsOf(hit, fusion, best) {
  const bar = el("span.legs-bar", { "aria-hidden": "true" });
  const rows = LEGS.map((leg) => {
    const found = hit[leg];
    const adds = share(fusion, found);
    const piece = el(`span.leg.${leg}`, { "data-adds": adds });
    setVars(piece, { width: `${best ? (100 * adds) / best : 0}%` });
    bar.append(piece);
    return el("tr", { "data-leg": leg },
      el("th", { scope: "row" }, el(`span.key.${leg}`, { "aria-hidden": "true" }), t(`leg.${leg}`)),
      el("td.num", {}, found ? t("leg.rank", { n: count(found.rank) }) : "–"),
      el("td.num", {}, found ? exact(found.score) : t("leg.absent")),
      el("td.num.how", {}, found ? `${found.weight.toFixed(2)} / (${fusion.k} + ${found.rank})` : ""),
      el("td.num", {}, adds.toFixed(4)));
  });
  return el("div.legs", {}, bar,
    el("table", {},
      el("caption.vh", {}, t("leg.caption")),
      el("thead", {}, el("tr", {},
        el("th", { scope: "col" }, t("leg.leg")), el("th.num", { scope: "col" }, t("leg.place")),
        el("th.num", { scope: "col" }, t("leg.score")), el("th.num.how", { scope: "col" }, t("leg.weight")),
        el("th.num", { scope: "col" }, t("leg.adds")))),
      el("tbody", {}, ...rows,
        el("tr.sum", {}, el("th", { scope: "row" }, t("leg.sum")),
          el("td.num", {}, t("leg.rank", { n: count(hit.rerank ? hit.rerank.before : hit.rank) })),
          el("td"), el("td.how"), el("td.num", {}, hit.score.toFixed(4))),
        hit.rerank ? reread(hit) : null)));
}

/** The rerank stage's word, where there is one: it alone decided the place. */
const reread = (hit) => el("tr", { "data-leg": "rerank" },
  el("th", { scope: "row" }, t("leg.rerank")),
  el("td.num", {}, t("leg.rank", { n: count(hit.rank) })),
  el("td.num", {}, exact(hit.rerank.score)), el("td.how"), el("td"));
