/** Starts the page: words first, then the parts, then the live feed. */

import { build as buildCharts, startCharts } from "./charts.js";
import { drawCompare, startCompare } from "./compare.js";
import { drawControls, go, goAll, pause, shuffle, startControls } from "./controls.js";
import { drawDoors, startDoors } from "./doors.js";
import { startFeed } from "./feed.js";
import { language, onLanguage, setLanguage, startLanguage } from "./shared/i18n.js";
import { startKeys } from "./shared/keys.js";
import { drawLane, startLane } from "./lane.js";
import { drawModel, startModel } from "./model.js";
import { readLink, startLink } from "./permalink.js";
import { busy, DOORS, tell } from "./state.js";
import { redraw, startTable } from "./table.js";
import { nameTheme, startTheme } from "./shared/theme.js";
import { $ } from "./shared/dom.js";

await startLanguage(import.meta.url, readLink());
startTheme(buildCharts);
startDoors();
startTable();
startCompare();
startControls();
startLane();
startModel();
startCharts();
startLink();
startFeed();

$("lang").addEventListener("click", () => setLanguage(language() === "ko" ? "en" : "ko"));
onLanguage(() => {
  for (const draw of [nameTheme, drawDoors, redraw, drawCompare, drawControls, drawLane, drawModel, buildCharts]) draw();
});
addEventListener("hashchange", async () => {
  const lang = readLink();
  if (lang && lang !== language()) await setLanguage(lang);
  tell("choice");
});

/** Choose a door as a click would, so that its last run is shown too. */
const choose = (door) => () => { if (!busy()) { $(`door-${door}`).click(); $(`door-${door}`).focus(); } };
startKeys({
  ...Object.fromEntries(DOORS.map((door, k) => [String(k + 1), choose(door)])),
  g: go, r: goAll, n: shuffle, p: pause, "?": () => $("help").showModal(),
});
document.documentElement.dataset.ready = "true";
