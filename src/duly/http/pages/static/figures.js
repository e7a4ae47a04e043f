/** Dates, amounts and the like, each with where it stands; what is doubtful comes first, and says so in words. */

import { el } from "./dom.js";
import { foldedTable, row } from "./tables.js";
import { decimal, plainDate, t, tOr } from "./words.js";

/** Why a text could not be read, or what is wrong with a figure. @param {string} said */
export function reason(said) {
  const [, n, country, most] = /^(\d+) characters, (\w\w) has (\d+)$/.exec(said) ?? [];
  return n ? t("found.iban_length", { n, country, most }) : tOr(`reason.${said}`, said);
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
function place({ problem, around }) {
  const doubt = problem ? [el("strong", { class: "doubt" }, t("found.doubt", { why: reason(problem) })), el("br")] : [];
  return el("span", {}, ...doubt, around);
}

/**
 * @param {{kind: string, value: string, around: string, currency?: string, problem?: string, source?: string}[]} found
 * @param {string[]} more columns, by the names of their fields
 */
export function figureTable(found, more = []) {
  const sorted = [...found].sort((one, other) => Boolean(other.problem) - Boolean(one.problem));
  const head = ["kind", "value", "around", ...more].map((name) => t(`found.${name}`));
  return foldedTable(
    head,
    sorted.map((one) => row(t(`figure.${one.kind}`), valueOf(one), place(one), ...more.map((name) => one[name]))),
  );
}
