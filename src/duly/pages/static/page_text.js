/** A page of a document as text: its elements as paragraphs, and the origin of the text. */

import { el } from "./dom.js";
import { t, textOr } from "./i18n.js";

const TABLE = "Table";
const STATES = { ocr: t("page.ocr"), blank: t("page.blank"), needs_ocr: t("page.needs_ocr") };
const KINDS = { Title: "leaf-title", ListItem: "leaf-item", Header: "hint", Footer: "hint", PageNumber: "hint" };

/** Whether the value is a page. @param {any} value */
export const isLeaf = (value) => typeof value?.number === "number" && typeof value?.state === "string";

/** @param {any} page */
export const leafTitle = (page) => t("text.page", { n: page.number });

/** @param {{type: string, text: string}} element */
function part({ type, text }) {
  return type === TABLE ? el("pre", { class: "leaf-table" }, text) : el("p", { class: KINDS[type] ?? "" }, text);
}

/** The origin of the text, if it is not embedded in the file. @param {any} page */
export function leafState({ state }) {
  return STATES[state] ? el("span", { class: "chip", "data-page": state }, STATES[state]) : "";
}

/** The warnings and the text of a page. @param {any} page */
export function leaf(page) {
  const warnings = (page.warnings ?? []).map((code) => el("p", { class: "hint" }, textOr(`reason.${code}`, code)));
  const parts = (page.elements ?? []).filter((element) => element.text);
  return el("div", { class: "leaf" }, ...warnings, ...parts.map(part));
}
