/** Starts the page: words first, then the parts, then what the address asks for. */

import { readAddress, startAddress } from "./asked.js";
import { drawCover, knowCovers, startCover } from "./cover.js";
import { drawCategories, drawExamples, drawFilters, fill, knowCategories, lookFor, startFilters } from "./filters.js";
import { drawHits, startHits, toggleLegs } from "./hits.js";
import { drawBookcase, knowShelves, onShelf } from "./bookcase.js";
import { onCardFollowed } from "./cards.js";
import { askStats, drawHolds } from "./holds.js";
import { onSeen, search } from "./search.js";
import { onFollow } from "./similar.js";
import { drawTalk, knowManner, startTalk } from "./talk.js";
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
startTalk();

/** On a narrow window one of the two is seen at a time. */
function see(view) {
  $("work").dataset.view = view;
  for (const input of document.querySelectorAll("input[name=view]")) input.checked = input.value === view;
}
for (const input of document.querySelectorAll("input[name=view]")) input.addEventListener("change", () => see(input.value));
const find = (title) => { see("seek"); lookFor(title); $("q").focus(); };
onFollow(find);
onCardFollowed(find);
startCover(find);
onShelf((shelf) => { lookFor(shelf, shelf); $("q").focus(); });
onSeen(() => { drawTold(); drawHits(); drawFilters(); });

$("lang").addEventListener("click", () => setLanguage(language() === "ko" ? "en" : "ko"));
onLanguage(() => {
  for (const draw of [nameTheme, drawHolds, drawCategories, drawBookcase, drawExamples, drawTold, drawTalk, drawCover, () => drawHits(true)]) draw();
});
addEventListener("hashchange", async () => {
  const lang = readAddress();
  if (lang && lang !== language()) await setLanguage(lang);
  fill();
  search();
});
startKeys({
  "/": () => { see("seek"); $("q").focus(); }, t: () => { see("talk"); $("say").focus(); }, w: toggleLegs, n: () => turn(1), b: () => turn(-1),
  "?": () => $("help").showModal(),
});
search();
const stats = await askStats();
if (stats) {
  knowCategories(stats.categories);
  knowShelves(stats.categories);
  knowManner(stats.turn);
  knowCovers(stats.cover);
}
document.documentElement.dataset.ready = "true";
