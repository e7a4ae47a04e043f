/** Tables and bars. */

import { el } from "./dom.js";
import { t } from "./words.js";

const AT_FIRST = 10;

/** The cells of a row. @param {...(Node | string)} cells */
export const row = (...cells) => cells;

/**
 * @param {string[]} head no headings if it is empty
 * @param {(Node | string)[][]} rows
 * @param {{numbers?: number[], kind?: string}} [how] which columns are numbers; `list` for cards where it is narrow
 */
export function table(head, rows, { numbers = [], kind = "" } = {}) {
  const align = (n) => ({ class: numbers.includes(n) ? "number" : "" });
  const cells = (tag, texts, more = {}) => texts.map((text, n) => el(tag, { ...align(n), ...more }, text));
  const top = head.length ? [el("thead", {}, el("tr", {}, ...cells("th", head, { scope: "col" })))] : [];
  const body = el("tbody", {}, ...rows.map((one) => el("tr", {}, ...cells("td", one))));
  return el("div", { class: "scroll", tabindex: "0" }, el("table", { class: kind }, ...top, body));
}

/**
 * A name, a bar and a word about it.
 * @param {string} name
 * @param {number} part from 0 to 1
 * @param {string} said
 */
export const share = (name, part, said) =>
  el(
    "li",
    {},
    el("span", { class: "key" }, name),
    el("meter", { min: "0", max: "1", value: `${part}`, "aria-hidden": "true" }),
    el("span", { class: "said" }, said),
  );

/**
 * A list with its first items, and a button for the others.
 * @param {HTMLElement} list
 * @param {Element[]} items
 * @param {HTMLElement} [whole] what the list is part of
 */
export function folded(list, items, whole = list) {
  list.replaceChildren(...items.slice(0, AT_FIRST));
  const rest = items.slice(AT_FIRST);
  if (!rest.length) return whole;
  const more = el("button", { type: "button", class: "plain" }, t("tree.more", { n: rest.length }));
  more.addEventListener("click", () => {
    list.append(...rest);
    more.remove();
  });
  return el("div", {}, whole, more);
}

/** A table with its first rows, and a button for the others. @param {string[]} head @param {(Node | string)[][]} rows */
export function foldedTable(head, rows) {
  const whole = table(head, rows, { kind: "list" });
  const body = whole.querySelector("tbody");
  return folded(body, [...body.children], whole);
}
