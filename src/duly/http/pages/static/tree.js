/** Any JSON value as a tree that can be opened and closed. */

import { el } from "./dom.js";
import { isNumber } from "./exact.js";
import { t } from "./words.js";

const AT_ONCE = 100;
const OPEN_DEPTH = 2;
const LONG = 400;

/** Whether it has no entries of its own. @param {unknown} value */
const simple = (value) => value === null || typeof value !== "object" || isNumber(value);

/** @param {unknown} value */
function leaf(value) {
  if (value === null) return el("span", { class: "none" }, "–");
  if (typeof value === "boolean") return el("span", { class: "value" }, t(value ? "yes" : "no"));
  // As it is: it may be a year, or the number of an order.
  if (isNumber(value)) return el("span", { class: "value number" }, String(value));
  const text = String(value);
  return text.length > LONG || text.includes("\n") ? el("pre", {}, text) : el("span", { class: "value" }, text);
}

/** Some entries, and a button for the rest. @param {[string, unknown][]} entries @param {number} depth */
function some(entries, depth) {
  const list = el("ul");
  const more = (from) => {
    list.append(...entries.slice(from, from + AT_ONCE).map(([name, value]) => entry(name, value, depth)));
    const left = entries.length - from - AT_ONCE;
    if (left <= 0) return;
    const next = el("button", { type: "button", class: "plain" }, t("tree.more", { n: left }));
    const item = el("li", {}, next);
    next.addEventListener("click", () => {
      item.remove();
      more(from + AT_ONCE);
    });
    list.append(item);
  };
  more(0);
  return list;
}

function entry(name, value, depth) {
  const label = el("span", { class: "key" }, name);
  if (simple(value)) return el("li", {}, label, " ", leaf(value));
  const entries = Object.entries(value);
  if (!entries.length) return el("li", {}, label, " ", el("span", { class: "none" }, t("tree.empty")));
  const count = el("span", { class: "count" }, `${entries.length}`);
  const branch = el("details", { open: depth < OPEN_DEPTH }, el("summary", {}, label, " ", count));
  // What is closed is made when it is opened: a large result must not make the page slow.
  const fill = () => branch.childElementCount === 1 && branch.append(some(entries, depth + 1));
  if (branch.open) fill();
  else branch.addEventListener("toggle", fill);
  return el("li", {}, branch);
}

/** @param {unknown} value */
export function tree(value) {
  const body = simple(value) ? el("p", {}, leaf(value)) : some(Object.entries(value), 1);
  return el("div", { class: "tree" }, body);
}
