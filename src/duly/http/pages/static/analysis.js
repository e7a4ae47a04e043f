/** The summary of an analysis, one section for each thing that was looked at. */

import { el } from "./dom.js";
import { isNumber } from "./exact.js";
import { dated, figureTable, reason } from "./figures.js";
import { folded, row, share, table } from "./tables.js";
import { language, number, percent, t, tOr } from "./words.js";

const names = new Intl.DisplayNames(language, { type: "language" });
const TRACE = 0.01;
const FIGURES = ["dates", "money", "percentages", "emails", "ibans"];

/** The name of a language by its code. @param {string} code */
export function nameOf(code) {
  if (code === "und") return t("found.unknown");
  try {
    return names.of(code) ?? code;
  } catch {
    return code;
  }
}

/** @param {any} found */
export const readability = (found) => (found ? `${tOr(`readability.${found.label}`, found.label)} (${number(found.score)})` : "");

/** Numbers with their names, the large ones of a page; not those that nobody counted. @param {[string, number | null][]} said */
export function figures(said) {
  const counted = said.filter(([, value]) => isNumber(value));
  const told = counted.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, number(value))));
  return el("dl", { class: "figures" }, ...told);
}

/** Shares of languages; traces are left out. @param {{language: string, share: number}[]} mix */
export function languages(mix) {
  const told = mix.filter((one) => one.share >= TRACE);
  return el("ul", { class: "shares" }, ...told.map((one) => share(nameOf(one.language), one.share, percent(one.share))));
}

/** @param {string} title @param {...(Node | string)} body */
const section = (title, ...body) => el("section", { class: "card" }, el("h2", {}, title), ...body);

const leftOut = (listed) => (listed.left_out ? [el("p", { class: "hint" }, t("found.left_out", { n: listed.left_out }))] : []);

function overview({ totals }) {
  const said = [
    [t("found.sources"), totals.sources],
    [t("found.words"), totals.words],
    [t("found.sentences"), totals.sentences],
    [t("found.minutes"), totals.reading_minutes],
  ];
  if (totals.unreadable) said.push([t("found.unreadable"), totals.unreadable]);
  return section(t("found.overview"), figures(said));
}

/** How often a term comes. @param {{count: number, sources: number}} term @param {number} among so many texts */
function often({ count, sources }, among) {
  if (among === 1) return `${count} ×`;
  return t(sources === 1 ? "found.terms.one" : "found.terms.many", { n: count, sources });
}

function terms(summary) {
  const told = summary.terms.map((one) => share(one.term, one.score, often(one, summary.totals.sources)));
  return section(t("found.terms"), folded(el("ul", { class: "shares" }), told));
}

function counted(summary) {
  const kinds = summary.figures.with_problems ? [...FIGURES, "with_problems"] : FIGURES;
  const counts = figures(kinds.map((kind) => [t(`found.${kind}`), summary.figures[kind]]));
  const listed = summary.listed_figures;
  const shown = listed?.items.length ? [figureTable(listed.items, ["source"]), ...leftOut(listed)] : [];
  return section(t("found.figures"), counts, ...shown);
}

function duplicates({ duplicates: listed }) {
  const rows = listed.items.map((pair) =>
    row(pair.first, pair.second, pair.identical ? t("found.identical") : percent(pair.likeness)),
  );
  const head = [t("found.source"), t("found.source"), t("found.likeness")];
  return section(t("found.duplicates"), table(head, rows, { numbers: [2] }), ...leftOut(listed));
}

function timeline({ timeline: listed }) {
  const items = listed.items.map((event) =>
    el("li", {}, dated(event.date), el("span", {}, event.around, " ", el("small", {}, event.source))),
  );
  return section(t("found.timeline"), folded(el("ol", { class: "timeline" }), items), ...leftOut(listed));
}

function sources({ sources: listed }) {
  const rows = listed.items.map((one) =>
    row(
      one.name,
      one.unreadable ? `${t("found.unreadable")}: ${reason(one.unreadable)}` : one.language ? nameOf(one.language) : "",
      isNumber(one.words) ? number(one.words) : "",
      readability(one.readability),
      isNumber(one.figures) ? number(one.figures) : "",
    ),
  );
  const head = ["source", "language", "words", "readability", "figures"].map((name) => t(`found.${name}`));
  return section(t("found.sources"), table(head, rows, { numbers: [2, 4] }), ...leftOut(listed));
}

function failed({ failed: listed }) {
  const items = listed.items.map((key) => el("li", {}, key));
  return el("section", { class: "notice warn" }, el("p", {}, t("found.failed")), el("ul", {}, ...items), ...leftOut(listed));
}

/** Whether we know how to read it. @param {any} value */
export const isSummary = (value) => value?.schema_version === 1 && Boolean(value.totals && value.sources);

/** @param {any} summary */
export function showSummary(summary) {
  return [
    summary.failed.items.length ? failed(summary) : null,
    overview(summary),
    summary.languages.length ? section(t("module.language"), languages(summary.languages)) : null,
    summary.terms.length ? terms(summary) : null,
    summary.modules.includes("figures") ? counted(summary) : null,
    summary.duplicates.items.length ? duplicates(summary) : null,
    summary.timeline.items.length ? timeline(summary) : null,
    sources(summary),
  ].filter(Boolean);
}
