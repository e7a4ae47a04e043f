/** Rendering of result values: analyses and document pages have their own form, others are trees. */

import { isFindings, isNumber, isSummary, showFindings, showSummary, titleOf } from "./analysis.js";
import { base, get } from "./api.js";
import { el, timeOf } from "./dom.js";
import { t, time } from "./i18n.js";
import { isLeaf, leaf, leafState, leafTitle } from "./page_text.js";

const ANALYZE = "analyze.run";
const EXTRACT = "extract_document";

/** The final value of a job. @param {string} jobType @param {any} value */
export function whole(jobType, value) {
  if (jobType === ANALYZE && isSummary(value)) {
    const all = el("details", { class: "card" }, el("summary", {}, t("result.raw")), tree(value));
    return el("div", { class: "analysis" }, ...showSummary(value), all);
  }
  return el("section", { class: "card" }, value === null ? el("p", {}, t("result.nothing")) : tree(value));
}

/**
 * A partial result: its title and its value.
 * @param {string} jobType
 * @param {{seq: number, chunk_key: string | null, value: any, large: boolean}} snapshot
 * @param {string} path of the result, which returns large values
 * @returns {[string, Node]}
 */
export function part(jobType, { seq, chunk_key: key, value, large }, path) {
  if (jobType === ANALYZE && isFindings(value)) return [titleOf(value), showFindings(value)];
  if (jobType === EXTRACT && isLeaf(value)) return [leafTitle(value), el("div", {}, leafState(value), leaf(value))];
  const name = key ?? t("partials.part", { n: seq });
  if (!large) return [name, tree(value)];
  return [name, el("p", {}, el("a", { href: `${base}${path}?seq=${seq}` }, t("partials.large")))];
}

const ENTRIES_PER_STEP = 100;
const OPEN_DEPTH = 2;
const LONG = 400;

/** Whether the value has no entries. @param {unknown} value */
const simple = (value) => value === null || typeof value !== "object" || isNumber(value);

/** @param {unknown} value */
function scalar(value) {
  if (value === null) return el("span", { class: "none" }, "–");
  if (typeof value === "boolean") return el("span", { class: "value" }, t(value ? "yes" : "no"));
  // Without separators: it may be a year or an order number.
  if (isNumber(value)) return el("span", { class: "value number" }, String(value));
  const text = String(value);
  return text.length > LONG || text.includes("\n") ? el("pre", {}, text) : el("span", { class: "value" }, text);
}

/** The first entries, and a button for the rest. @param {[string, unknown][]} entries @param {number} depth */
function list(entries, depth) {
  const items = el("ul");
  const more = (from) => {
    items.append(...entries.slice(from, from + ENTRIES_PER_STEP).map(([name, value]) => entry(name, value, depth)));
    const left = entries.length - from - ENTRIES_PER_STEP;
    if (left <= 0) return;
    const next = el("button", { type: "button", class: "plain" }, t("tree.more", { n: left }));
    const item = el("li", {}, next);
    next.addEventListener("click", () => {
      item.remove();
      more(from + ENTRIES_PER_STEP);
    });
    items.append(item);
  };
  more(0);
  return items;
}

function entry(name, value, depth) {
  const label = el("span", { class: "key" }, name);
  if (simple(value)) return el("li", {}, label, " ", scalar(value));
  const entries = Object.entries(value);
  if (!entries.length) return el("li", {}, label, " ", el("span", { class: "none" }, t("tree.empty")));
  const count = el("span", { class: "count" }, `${entries.length}`);
  const branch = el("details", { open: depth < OPEN_DEPTH }, el("summary", {}, label, " ", count));
  // Closed branches are rendered when they are opened: a large result must not slow down the page.
  const fill = () => branch.childElementCount === 1 && branch.append(list(entries, depth + 1));
  if (branch.open) fill();
  else branch.addEventListener("toggle", fill);
  return el("li", {}, branch);
}

/** @param {unknown} value */
export function tree(value) {
  const body = simple(value) ? el("p", {}, scalar(value)) : list(Object.entries(value), 1);
  return el("div", { class: "tree" }, body);
}

const MAX_SNAPSHOTS = 30;

/** The partial results, read page by page. */
export class Snapshots {
  /** @param {HTMLElement} element @param {string} resultId @param {string} jobType */
  constructor(element, resultId, jobType) {
    this.path = `/v1/results/${resultId}`;
    this.jobType = jobType;
    this.after = 0;
    this.count = 0;
    this.list = el("div", { class: "snapshots" });
    this.earlier = el("p", { class: "hint", hidden: true });
    element.replaceChildren(this.list, this.earlier);
  }

  /** Read the snapshots up to this number. @param {number} latest */
  async update(latest) {
    while (this.after < latest) {
      const page = await get(`${this.path}/snapshots?after=${this.after}`);
      if (page.after <= this.after) break;
      this.after = page.after;
      for (const snapshot of page.snapshots) if (snapshot.kind === "partial") this.add(snapshot);
    }
  }

  add(snapshot) {
    this.count += 1;
    const [name, value] = part(this.jobType, snapshot, this.path);
    const head = el("h3", {}, name, " ", timeOf(snapshot.created_at, time));
    this.list.prepend(el("article", { class: "card snapshot" }, head, value));
    if (this.list.childElementCount > MAX_SNAPSHOTS) this.list.lastElementChild.remove();
    const n = this.count - this.list.childElementCount;
    this.earlier.hidden = n === 0;
    this.earlier.textContent = t("partials.earlier", { n });
  }
}
