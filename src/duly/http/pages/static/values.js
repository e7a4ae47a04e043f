/** How the values of results are shown: analyses and pages of documents in their own way, all others as a tree. */

import { isSummary, showSummary } from "./analysis.js";
import { isFindings, showFindings, titleOf } from "./findings.js";
import { base } from "./api.js";
import { el } from "./dom.js";
import { isLeaf, leaf, leafState, leafTitle } from "./leaf.js";
import { tree } from "./tree.js";
import { t } from "./words.js";

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
 * A part of it: what it is called, and the value.
 * @param {string} jobType
 * @param {{seq: number, chunk_key: string | null, value: any, large: boolean}} snapshot
 * @param {string} path of the result, which has the values that are too large for a list
 * @returns {[string, Node]}
 */
export function part(jobType, { seq, chunk_key: key, value, large }, path) {
  if (jobType === ANALYZE && isFindings(value)) return [titleOf(value), showFindings(value)];
  if (jobType === EXTRACT && isLeaf(value)) return [leafTitle(value), el("div", {}, leafState(value), leaf(value))];
  const name = key ?? t("partials.part", { n: seq });
  if (!large) return [name, tree(value)];
  return [name, el("p", {}, el("a", { href: `${base}${path}?seq=${seq}` }, t("partials.large")))];
}
