/** What one module found in one text: the partial results of an analysis. */

import { figures, languages, readability } from "./analysis.js";
import { el } from "./dom.js";
import { figureTable, reason } from "./figures.js";
import { share } from "./tables.js";
import { t } from "./words.js";

const TERMS = 10;
const MODULES = {
  language: ({ mix }) => (mix.length ? languages(mix) : nothing()),
  size: (found) => [
    figures([
      [t("found.words"), found.words],
      [t("found.sentences"), found.sentences],
      [t("found.paragraphs"), found.paragraphs],
      [t("found.minutes"), found.reading_minutes],
    ]),
    found.readability ? el("p", {}, `${t("found.readability")}: ${readability(found.readability)}`) : "",
  ],
  terms: ({ terms }) =>
    terms.length
      ? el("ul", { class: "shares" }, ...terms.slice(0, TERMS).map((one) => share(one.term, one.score, `${one.count} ×`)))
      : nothing(),
  figures: (found) => figuresOf(found),
  likeness: ({ runs }) => el("p", {}, t("found.runs", { n: runs })),
};

const nothing = () => el("p", { class: "hint" }, t("found.none"));

function figuresOf(found) {
  const all = Object.entries(found).flatMap(([kind, listed]) => listed.items.map((figure) => ({ kind, ...figure })));
  return all.length ? figureTable(all) : nothing();
}

const moduleOf = (value) => Object.keys(MODULES).find((name) => value[name]);

/** Whether we know how to read it. @param {any} value */
export const isFindings = (value) =>
  value?.schema_version === 1 && typeof value.source === "string" && Boolean(value.unreadable || moduleOf(value));

/** What it is called in the list. @param {any} value */
export function titleOf(value) {
  const module = moduleOf(value);
  return module ? `${value.source}: ${t(`module.${module}`)}` : value.source;
}

/** @param {any} value */
export function showFindings(value) {
  const module = moduleOf(value);
  if (!module) return el("p", {}, `${t("found.unreadable")}: ${reason(value.unreadable)}`);
  return el("div", {}, ...[MODULES[module](value[module])].flat());
}
