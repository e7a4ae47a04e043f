/** The summary of an analysis, one section per module. */

import { el, folded, foldedTable, row, share, table } from "./dom.js";
import { decimal, language, number, percent, plainDate, t, textOr } from "./i18n.js";

/** A number with its spelling in JSON, which a float would lose: integers beyond 2^53, or 1.0. */

class Written extends Number {
  /** @param {string} text */
  constructor(text) {
    super(text);
    this.text = text;
  }

  toString() {
    return this.text;
  }
}

// Browsers without source text access return the nearest float.
const keep = (_, value, said) =>
  typeof value === "number" && said?.source && said.source !== String(value) ? new Written(said.source) : value;

/** @param {string} text JSON */
export const exactly = (text) => JSON.parse(text, keep);

/** @param {unknown} value */
export const isNumber = (value) => typeof value === "number" || value instanceof Written;

/** The reason why a text is unreadable or a figure uncertain, translated. @param {string} said */
export function reason(said) {
  const [, n, country, expected] = /^(\d+) characters, (\w\w) has (\d+)$/.exec(said) ?? [];
  return n ? t("findings.iban_length", { n, country, expected }) : textOr(`reason.${said}`, said);
}

/** A date as the reader writes it. @param {string} iso */
export const dated = (iso) => el("time", { datetime: iso, title: iso }, plainDate(iso));

/** @param {{kind: string, value: string, currency?: string}} figure */
function valueOf({ kind, value, currency }) {
  if (kind === "dates") return dated(value);
  if (kind === "money") return el("span", { title: value }, [decimal(value), currency].filter(Boolean).join("\u00a0"));
  return kind === "percentages" ? el("span", { title: value }, `${decimal(value)}\u00a0%`) : value;
}

/** @param {{problem?: string, around: string}} figure */
function context({ problem, around }) {
  const doubt = problem ? [el("strong", { class: "doubt" }, t("findings.doubt", { reason: reason(problem) })), el("br")] : [];
  return el("span", {}, ...doubt, around);
}

/**
 * @param {{kind: string, value: string, around: string, currency?: string, problem?: string, source?: string}[]} found
 * @param {string[]} more columns, by the names of their fields
 */
export function figureTable(found, more = []) {
  const sorted = [...found].sort((one, other) => Boolean(other.problem) - Boolean(one.problem));
  const head = ["kind", "value", "context", ...more].map((name) => t(`findings.${name}`));
  return foldedTable(
    head,
    sorted.map((one) => row(t(`figure.${one.kind}`), valueOf(one), context(one), ...more.map((name) => one[name]))),
  );
}

const TERMS = 10;
const MODULES = {
  language: ({ mix }) => (mix.length ? languages(mix) : nothing()),
  size: (found) => [
    figures([
      [t("findings.words"), found.words],
      [t("findings.sentences"), found.sentences],
      [t("findings.paragraphs"), found.paragraphs],
      [t("findings.minutes"), found.reading_minutes],
    ]),
    found.readability ? el("p", {}, `${t("findings.readability")}: ${readability(found.readability)}`) : "",
  ],
  terms: ({ terms }) =>
    terms.length
      ? el("ul", { class: "shares" }, ...terms.slice(0, TERMS).map((one) => share(one.term, one.score, `${one.count} ×`)))
      : nothing(),
  figures: (found) => figuresOf(found),
  likeness: ({ runs }) => el("p", {}, t("findings.runs", { n: runs })),
};

const nothing = () => el("p", { class: "hint" }, t("findings.none"));

function figuresOf(found) {
  const all = Object.entries(found).flatMap(([kind, listed]) => listed.items.map((figure) => ({ kind, ...figure })));
  return all.length ? figureTable(all) : nothing();
}

const moduleOf = (value) => Object.keys(MODULES).find((name) => value[name]);

/** Whether the value has a known schema. @param {any} value */
export const isFindings = (value) =>
  value?.schema_version === 1 && typeof value.source === "string" && Boolean(value.unreadable || moduleOf(value));

/** The title in the list of partial results. @param {any} value */
export function titleOf(value) {
  const module = moduleOf(value);
  return module ? `${value.source}: ${t(`module.${module}`)}` : value.source;
}

/** @param {any} value */
export function showFindings(value) {
  const module = moduleOf(value);
  if (!module) return el("p", {}, `${t("findings.unreadable")}: ${reason(value.unreadable)}`);
  return el("div", {}, ...[MODULES[module](value[module])].flat());
}

const names = new Intl.DisplayNames(language, { type: "language" });
const TRACE = 0.01;
const FIGURES = ["dates", "money", "percentages", "emails", "ibans"];

/** The name of a language by its code. @param {string} code */
export function nameOf(code) {
  if (code === "und") return t("findings.unknown");
  try {
    return names.of(code) ?? code;
  } catch {
    return code;
  }
}

/** @param {any} found */
export const readability = (found) => (found ? `${textOr(`readability.${found.label}`, found.label)} (${number(found.score)})` : "");

/** Key figures with their names; missing ones are left out. @param {[string, number | null][]} said */
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

const leftOut = (listed) => (listed.left_out ? [el("p", { class: "hint" }, t("findings.left_out", { n: listed.left_out }))] : []);

function overview({ totals }) {
  const said = [
    [t("findings.sources"), totals.sources],
    [t("findings.words"), totals.words],
    [t("findings.sentences"), totals.sentences],
    [t("findings.minutes"), totals.reading_minutes],
  ];
  if (totals.unreadable) said.push([t("findings.unreadable"), totals.unreadable]);
  return section(t("findings.overview"), figures(said));
}

/** How often a term comes. @param {{count: number, sources: number}} term @param {number} among so many texts */
function often({ count, sources }, among) {
  if (among === 1) return `${count} ×`;
  return t(sources === 1 ? "findings.terms.one" : "findings.terms.many", { n: count, sources });
}

function terms(summary) {
  const told = summary.terms.map((one) => share(one.term, one.score, often(one, summary.totals.sources)));
  return section(t("findings.terms"), folded(el("ul", { class: "shares" }), told));
}

function counted(summary) {
  const kinds = summary.figures.with_problems ? [...FIGURES, "with_problems"] : FIGURES;
  const counts = figures(kinds.map((kind) => [t(`findings.${kind}`), summary.figures[kind]]));
  const listed = summary.listed_figures;
  const shown = listed?.items.length ? [figureTable(listed.items, ["source"]), ...leftOut(listed)] : [];
  return section(t("findings.figures"), counts, ...shown);
}

function duplicates({ duplicates: listed }) {
  const rows = listed.items.map((pair) =>
    row(pair.first, pair.second, pair.identical ? t("findings.identical") : percent(pair.likeness)),
  );
  const head = [t("findings.source"), t("findings.source"), t("findings.likeness")];
  return section(t("findings.duplicates"), table(head, rows, { numbers: [2] }), ...leftOut(listed));
}

function timeline({ timeline: listed }) {
  const items = listed.items.map((event) =>
    el("li", {}, dated(event.date), el("span", {}, event.around, " ", el("small", {}, event.source))),
  );
  return section(t("findings.timeline"), folded(el("ol", { class: "timeline" }), items), ...leftOut(listed));
}

function sources({ sources: listed }) {
  const rows = listed.items.map((one) =>
    row(
      one.name,
      one.unreadable ? `${t("findings.unreadable")}: ${reason(one.unreadable)}` : one.language ? nameOf(one.language) : "",
      isNumber(one.words) ? number(one.words) : "",
      readability(one.readability),
      isNumber(one.figures) ? number(one.figures) : "",
    ),
  );
  const head = ["source", "language", "words", "readability", "figures"].map((name) => t(`findings.${name}`));
  return section(t("findings.sources"), table(head, rows, { numbers: [2, 4] }), ...leftOut(listed));
}

function failed({ failed: listed }) {
  const items = listed.items.map((key) => el("li", {}, key));
  return el("section", { class: "notice warn" }, el("p", {}, t("findings.failed")), el("ul", {}, ...items), ...leftOut(listed));
}

/** Whether the value has a known schema. @param {any} value */
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
