/**
 * Finding a book by its cover: a picture chosen, dropped or pasted goes to the service as it is, and what came
 * of it is shown: the book, or what was read and what came near. One picture at a time.
 */

import { cover, facts } from "./book.js";
import { countdown } from "./countdown.js";
import { partsBar } from "./parts.js";
import { patiently } from "./patience.js";
import { degradedText, problemText } from "./problem.js";
import { say } from "./shared/announce.js";
import { ask } from "./shared/ask.js";
import { $, el } from "./shared/dom.js";
import { bytes } from "./shared/format.js";
import { knows, t } from "./shared/i18n.js";

const LINES_MAX = 8;
/** @type {any} what the service takes */
let takes = null;
let find = (_) => {};
let running = /** @type {AbortController|null} */ (null);
/** Draws the latest outcome again, in whatever language. */
let latest = () => {};

/** @param {(words: string) => void} fn called when somebody searches for what was found */
export function startCover(fn) {
  find = fn;
  $("cover-open").addEventListener("click", () => (running || !$("cover").hidden ? close() : open()));
  $("cover-close").addEventListener("click", close);
  $("cover").addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  $("cover-pick").addEventListener("click", () => $("cover-file").click());
  $("cover-file").addEventListener("change", () => { take($("cover-file").files); $("cover-file").value = ""; });
  addEventListener("paste", (event) => { if (pictures(event.clipboardData).length) { event.preventDefault(); take(pictures(event.clipboardData)); } });
  for (const name of ["dragenter", "dragover"]) addEventListener(name, over);
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) delete document.body.dataset.drop; });
  addEventListener("drop", (event) => {
    delete document.body.dataset.drop;
    if (!takes || !event.dataTransfer?.files.length) return;
    event.preventDefault();
    take(event.dataTransfer.files);
  });
}

/** Show the way in, if the service reads covers. @param {any} told */
export function knowCovers(told) {
  takes = told?.offered ? told : null;
  $("cover-open").hidden = !takes;
  if (takes) $("cover-file").accept = takes.types.join(",");
}

export const drawCover = () => latest();

const pictures = (data) => (takes ? [...(data?.files || [])].filter((file) => file.type.startsWith("image/")) : []);

function over(event) {
  if (!takes || ![...(event.dataTransfer?.types || [])].includes("Files")) return;
  event.preventDefault();
  document.body.dataset.drop = "true";
}

function open() {
  $("cover").hidden = false;
  $("cover-open").setAttribute("aria-expanded", "true");
  $("cover-pick").focus();
}

function close() {
  running?.abort();
  latest = () => {};
  $("cover").hidden = true;
  $("cover-open").setAttribute("aria-expanded", "false");
  $("cover-said").replaceChildren();
  $("cover-open").focus();
}

async function take(files) {
  const [file] = files || [];
  if (!file) return undefined;
  if ($("cover").hidden) open();
  running?.abort();
  const wrong = !takes.types.includes(file.type) ? "cover.type" : file.size > takes.body_max_bytes ? "cover.size" : "";
  if (!wrong) return send(file, new AbortController());
  const said = () => t(wrong, { most: bytes(takes.body_max_bytes) });
  show(() => [note(said())]);
  return say(said());
}

async function send(file, mine) {
  running = mine;
  const picture = el("img.cover-picture", { alt: t("cover.yours") });
  const reading = () => show(() => [picture, el("p.cover-busy", {}, t("cover.reading"))]);
  reading();
  picture.src = await dataUrl(file);
  let answer;
  try {
    answer = await patiently(() => ask("api/books/cover", file, mine.signal), (refusal) => waiting(picture, refusal), reading, mine.signal);
  } catch {
    answer = { status: 0, body: null };
  }
  if (mine.signal.aborted) return;
  running = null;
  if (answer.status !== 200) {
    show(() => [picture, note(problemText(answer))]);
    say(problemText(answer));
    return;
  }
  show(() => [picture, outcome(answer)]);
  say(headline(answer.body));
}

function show(draw) {
  latest = () => $("cover-said").replaceChildren(...draw());
  latest();
}

function waiting(picture, refusal) {
  const counting = countdown(refusal.until, refusal.ms, () => t("cover.reading"));
  show(() => [picture, el("div.notice", {}, el("p", {}, problemText(refusal)), counting.node)]);
}

const note = (text) => el("p.end", {}, text);

const dataUrl = (file) => new Promise((resolve) => {
  const reader = new FileReader();
  reader.addEventListener("load", () => resolve(String(reader.result)));
  reader.addEventListener("error", () => resolve(""));
  reader.readAsDataURL(file);
});

function headline(body) {
  if (body.found !== "needs_input") return t(`cover.found.${body.found}`);
  return t(knows(`cover.why.${body.why}`) ? `cover.why.${body.why}` : "cover.why.no-match");
}

function outcome(answer) {
  const { body } = answer;
  const found = body.found !== "needs_input";
  const lines = body.read.slice(0, LINES_MAX).map((line) => line.text);
  return el("div.cover-outcome", { "data-found": body.found },
    el("p.cover-headline", {}, headline(body)),
    ...body.degraded.map((code) => el("p.note", { "data-code": code }, degradedText(code))),
    found ? null : body.near.length ? el("p.muted", {}, t("cover.near")) : null,
    el("ul.near-list", {}, ...(found ? body.books : body.near).map(one)),
    lines.length ? el("p.muted.cover-read", {}, t("cover.read"), el("q", {}, lines.join(" / "))) : null,
    !found && lines.length ? searchFor(lines.join(" ")) : null,
    partsBar(answer.timing.parts, answer.timing.total, { roundTripMs: answer.roundTripMs }));
}

function one({ document, title, author }) {
  const button = el("button.near-one", { type: "button" },
    cover(document, "little"),
    el("span.near-text", {}, el("b", {}, document.title), el("span.muted", {}, facts(document)),
      el("span.muted", {}, t("cover.fits", { title: title.toFixed(2), author: author.toFixed(2) }))));
  button.addEventListener("click", () => find(document.title));
  return el("li", {}, button);
}

function searchFor(words) {
  const button = el("button.small", { type: "button" }, t("cover.search"));
  button.addEventListener("click", () => find(words.slice(0, 200)));
  return el("p", {}, button);
}
