/**
 * Two lines over the last minute and a half: how long the line is, and how much memory the naive child
 * uses, with its limit drawn. uPlot draws; the words beside the charts say the same numbers.
 */

/* global uPlot */
import { $, setText } from "./shared/dom.js";
import { bytes, count } from "./shared/format.js";
import { t } from "./shared/i18n.js";
import { on, state } from "./state.js";

const WINDOW_S = 90;
const STEP_MS = 500;
const HEIGHT = 84;
/** One row per sample: seconds, waiting and inside, open tickets, resident MiB. @type {(number|null)[][]} */
const data = [[], [], [], []];
/** @type {any[]} */
let plots = [];
let limitMiB = 0;
const restarts = [];
let lastRestarts = null;

export function startCharts() {
  build();
  on("stats", () => { sample(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", build);
  new ResizeObserver(resize).observe($("chart-line"));
  const turn = () => {
    if (!document.hidden && state.stats && state.link !== "gone") sample();
    setTimeout(turn, STEP_MS);
  };
  turn();
}

const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The colour behind a custom property, resolved for the canvas (light-dark() is not known there). */
function colour(name) {
  const probe = $("colour-probe");
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

/** Build both charts anew: at the start, in new colours, in a new language. */
export function build() {
  for (const plot of plots) plot.destroy();
  const x = { time: false, range: (_u, _min, max) => [max - WINDOW_S, max] };
  const font = `11px ${ink("--font") || "sans-serif"}`;
  const axis = {
    stroke: colour("--muted"), font, ticks: { show: false }, size: 34, gap: 4,
    grid: { stroke: colour("--hair"), width: 1 },
  };
  const common = {
    height: HEIGHT, legend: { show: false }, cursor: { show: false }, padding: [8, 4, 6, 0],
    width: Math.max(160, $("chart-line").clientWidth),
  };
  const seconds = { ...axis, show: false };
  const stepped = uPlot.paths.stepped({ align: 1 });
  plots = [
    new uPlot({
      ...common,
      scales: { x, y: { range: (_u, _min, max) => [0, Math.max(6, Math.ceil((max || 0) * 1.15))] } },
      axes: [seconds, { ...axis, incrs: [1, 2, 5, 10, 20, 50] }],
      series: [{}, {
        stroke: colour("--wait-ink"), fill: colour("--wait-soft"), width: 1.5, paths: stepped, points: { show: false },
      }, { stroke: colour("--ticket"), width: 1.5, dash: [4, 3], paths: stepped, points: { show: false } }],
    }, data.slice(0, 3), $("chart-line")),
    new uPlot({
      ...common,
      scales: { x, y: { range: (_u, _min, max) => [0, Math.max((limitMiB || 256) * 1.18, max || 0)] } },
      axes: [seconds, { ...axis, splits: () => (limitMiB ? [0, limitMiB / 2, limitMiB] : [0]),
        values: (_u, vals) => vals.map((v) => (v ? count(Math.round(v)) : "0")) }],
      series: [{}, {
        stroke: colour("--infer"), fill: colour("--infer-soft"), width: 1.5, points: { show: false }, spanGaps: false,
      }],
      hooks: { draw: [drawLimit] },
    }, [data[0], data[3]], $("chart-memory")),
  ];
}

function drawLimit(u) {
  if (!limitMiB) return;
  const { ctx } = u;
  const y = Math.round(u.valToPos(limitMiB, "y", true));
  ctx.save();
  ctx.strokeStyle = colour("--bad");
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(u.bbox.left, y);
  ctx.lineTo(u.bbox.left + u.bbox.width, y);
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.fillStyle = colour("--bad");
  ctx.font = `${11 * devicePixelRatio}px sans-serif`;
  ctx.textAlign = "center";
  for (const at of restarts) {
    const x = u.valToPos(at, "x", true);
    if (x >= u.bbox.left && x <= u.bbox.left + u.bbox.width) ctx.fillText("✕", x, y - 3 * devicePixelRatio);
  }
  ctx.restore();
}

function sample() {
  const s = state.stats;
  if (!s) return;
  const now = performance.now() / 1000;
  const naive = s.naive || { restarts: 0, limit_bytes: 0, rss_bytes: null, state: "off" };
  const last = data[0][data[0].length - 1];
  if (last !== undefined && now - last < 0.05) return;
  data[0].push(now);
  data[1].push(s.lane.waiting);
  data[2].push(s.tickets.queued);
  data[3].push(naive.state === "ready" && naive.rss_bytes ? naive.rss_bytes / 2 ** 20 : null);
  limitMiB = (naive.limit_bytes || 0) / 2 ** 20;
  if (lastRestarts !== null && naive.restarts > lastRestarts) restarts.push(now);
  lastRestarts = naive.restarts;
  while (data[0].length && data[0][0] < now - WINDOW_S - 5) for (const column of data) column.shift();
  while (restarts.length && restarts[0] < now - WINDOW_S) restarts.shift();
  if (state.paused) return;
  plots[0]?.setData(data.slice(0, 3));
  plots[1]?.setData([data[0], data[3]]);
  setText($("line-now"), t("chart.line.now", { waiting: count(s.lane.waiting), tickets: count(s.tickets.queued) }));
  setText($("memory-now"), t("chart.memory.now", { rss: bytes(naive.state === "ready" ? naive.rss_bytes : null), limit: bytes(naive.limit_bytes) }));
}

function resize() {
  const width = $("chart-line").clientWidth;
  if (width < 50) return;
  for (const plot of plots) plot.setSize({ width, height: HEIGHT });
}
