/** The text of a document: some pages at a time, and the one that was asked for. */

import { call } from "./api.js";
import { el, the } from "./dom.js";
import { leaf, leafState, leafTitle } from "./leaf.js";
import { t } from "./words.js";

const AT_ONCE = 20;
/** @type {any[]} */
let pages = [];
let [from, to] = [0, 0];

/** @param {any} page */
function article(page) {
  const head = el("h3", {}, leafTitle(page), " ", leafState(page));
  return el("article", { id: `page-${page.number}`, class: "page", tabindex: "-1" }, head, leaf(page));
}

/** Whether there is more above and below. */
function ends() {
  the("text-before").hidden = from === 0;
  the("text-after").hidden = to === pages.length;
}

function before() {
  const begin = Math.max(0, from - AT_ONCE);
  the("pages").prepend(...pages.slice(begin, from).map(article));
  from = begin;
  ends();
}

function after() {
  const end = Math.min(pages.length, to + AT_ONCE);
  the("pages").append(...pages.slice(to, end).map(article));
  to = end;
  ends();
}

/** Show the pages around one. @param {number} place in the list */
function around(place) {
  the("pages").replaceChildren();
  from = to = Math.max(0, Math.min(place, pages.length - 1));
  after();
}

/** Turn to a page. @param {number} number */
function turn(number) {
  const place = pages.findIndex((page) => page.number === number);
  if (place < 0) return;
  if (place < from || place >= to) around(place);
  the(`page-${number}`).scrollIntoView();
  the(`page-${number}`).focus({ preventScroll: true });
}

/** Turn to the page that the address names. */
function follow() {
  const named = location.hash.match(/^#page-(\d{1,9})$/);
  if (named) turn(Number(named[1]));
}

/** Read the text, and show it. @param {string} path of the document */
export async function showText(path) {
  pages = (await (await call("GET", `${path}/elements`)).json()).pages;
  the("text").hidden = pages.length === 0;
  the("text-none").hidden = pages.length > 0;
  the("text-go").hidden = pages.length < 2;
  the("text-page").max = `${pages.length}`;
  the("text-of").textContent = t("text.of", { n: pages.length });
  around(0);
  follow();
}

/** No text, and a word about it if nobody reads it just now. @param {boolean} isRead */
export function showNoText(isRead) {
  the("text").hidden = true;
  the("text-none").hidden = isRead;
}

the("text-before").addEventListener("click", before);
the("text-after").addEventListener("click", after);
the("text-go").addEventListener("submit", (event) => {
  event.preventDefault();
  const number = the("text-page").valueAsNumber;
  history.replaceState(null, "", `#page-${number}`);
  turn(number);
});
addEventListener("hashchange", follow);
