/**
 * Recommended cards with their texts, kept in this browser by their stable id: the service keeps nothing, so
 * that showing a card again asks nobody. Bounded; the oldest go first.
 */

const CARDS_MAX = 100;
const TURNS_MAX = 12;
const CARDS = "tailrace.books.cards";
const TALK = "tailrace.books.talk";

/** @type {Map<string, any>} */
const cards = new Map((read(localStorage, CARDS) || []).map((card) => [card.card_id, card]));

/** Keep cards; one that is there already is renewed, and a text it had is not lost. */
export function keep(fresh) {
  for (const card of fresh) {
    const old = cards.get(card.card_id) || {};
    cards.delete(card.card_id);
    cards.set(card.card_id, {
      ...card,
      reason_short: card.reason_short || old.reason_short || null,
      reason_long: card.reason_long || old.reason_long || null,
    });
  }
  for (const id of [...cards.keys()].slice(0, Math.max(0, cards.size - CARDS_MAX))) cards.delete(id);
  write(localStorage, CARDS, [...cards.values()]);
}

export const kept = (id) => cards.get(id);
/** The latest first. */
export const allKept = () => [...cards.values()].reverse();

export function forgetAll() {
  cards.clear();
  write(localStorage, CARDS, []);
}

/** The conversation of this tab, its cards by id alone. */
export const keepTalk = (turns) => write(sessionStorage, TALK, turns.slice(-TURNS_MAX).map((turn) => ({
  ...turn, cards: turn.cards.map((card) => card.card_id),
})));

export const keptTalk = () => (read(sessionStorage, TALK) || []).map((turn) => ({
  ...turn, cards: turn.cards.map((id) => kept(id)).filter(Boolean),
}));

function read(store, name) {
  try { return JSON.parse(store.getItem(name) || "null"); } catch { return null; }
}

function write(store, name, value) {
  try { store.setItem(name, JSON.stringify(value)); } catch { /* private mode, or full: kept until the page closes */ }
}
