/** Starts the page: words first, then the parts, then what the address asks for. */

import { readAddress, startAddress } from "./asked.js";
import { drawCategories, drawExamples, drawFilters, fill, knowCategories, lookFor, startFilters } from "./filters.js";
import { drawHits, startHits, toggleLegs } from "./hits.js";
import { askStats, drawHolds } from "./holds.js";
import { onSeen, search } from "./search.js";
import { onFollow } from "./similar.js";
import { drawTold, startTold, turn } from "./told.js";
import { $ } from "./shared/dom.js";
import { language, onLanguage, setLanguage, startLanguage } from "./shared/i18n.js";
import { startKeys } from "./shared/keys.js";
import { nameTheme, startTheme } from "./shared/theme.js";

await startLanguage(import.meta.url, readAddress());
startTheme(() => {});
startAddress();
startHits();
startTold();
startFilters();
drawExamples();
onFollow((title) => { lookFor(title); $("q").focus(); });
onSeen(() => { drawTold(); drawHits(); drawFilters(); });

$("lang").addEventListener("click", () => setLanguage(language() === "ko" ? "en" : "ko"));
onLanguage(() => {
  for (const draw of [nameTheme, drawHolds, drawCategories, drawExamples, drawTold, () => drawHits(true)]) draw();
});
addEventListener("hashchange", async () => {
  const lang = readAddress();
  if (lang && lang !== language()) await setLanguage(lang);
  fill();
  search();
});
startKeys({
  "/": () => $("q").focus(), w: toggleLegs, n: () => turn(1), b: () => turn(-1),
  "?": () => $("help").showModal(),
});
search();
const stats = await askStats();
if (stats) knowCategories(stats.categories);
document.documentElement.dataset.ready = "true";
