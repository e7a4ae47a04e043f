/** The type of a document: suggested with its evidence, or confirmed; and the form to change it. */

import { call, get, Problem, showProblem } from "./api.js";
import { byId, el, setText } from "./dom.js";
import { fullTime, percent, t, textOr } from "./i18n.js";

const MAX_EVIDENCE = 5;

/** The name of a type; a custom type is its own name. @param {string} type */
export const typeName = (type) => textOr(`doctype.${type}`, type);

/** Confirmed, or suggested with its confidence; empty while it needs review. @param {any} found @param {any} said */
function state(found, said) {
  if (!found.doc_type || (said.classifications[0]?.review && !found.doc_type_confirmed)) return "";
  return found.doc_type_confirmed ? t("document_type.confirmed") : t("document_type.suggested", { share: percent(found.doc_type_confidence ?? 0) });
}

/** @param {any} found @param {any} said */
function note(found, said) {
  const [last] = said.confirmations;
  if (found.doc_type_confirmed && last) return t("document_type.confirmed_by", { name: last.confirmed_by, time: fullTime(last.confirmed_at) });
  return said.classifications[0]?.review && !found.doc_type_confirmed ? t("document_type.review") : "";
}

/** @param {any} one @param {string} type that is shown */
function evidence(one, type) {
  const where = one.page ? [el("a", { href: `#page-${one.page}` }, t("text.page", { n: one.page })), " · "] : [];
  const other = one.doc_type === type ? "" : ` · ${t("document_type.evidence_for", { type: typeName(one.doc_type) })}`;
  const term = el("strong", {}, one.term.replaceAll("*", "…"));
  return el("li", {}, term, " ", el("q", {}, one.text), " ", el("small", {}, ...where, t(`zone.${one.zone}`), other));
}

/** @param {any} found @param {any} said */
function why(found, said) {
  const strongest = [...(said.classifications[0]?.evidence ?? [])].sort((one, other) => other.weight - one.weight).slice(0, MAX_EVIDENCE);
  byId("evidence").replaceChildren(...strongest.map((one) => evidence(one, found.doc_type)));
  byId("type-why").hidden = strongest.length === 0;
}

/** Suggest the folder of the type, if the document is in another one. @param {any} found @param {any} said */
async function suggestFolder(found, said, move) {
  const folderId = said.classifications[0]?.suggested_node;
  byId("belongs").hidden = true;
  if (!folderId || folderId === found.node_id) return;
  const folder = await get(`/v1/documents/folders/${folderId}`);
  const button = move ? [" ", el("button", { type: "button", class: "plain", click: () => move(folderId) }, t("document_type.move"))] : [];
  byId("belongs").replaceChildren(t("document_type.folder", { path: folder.path }), ...button);
  byId("belongs").hidden = false;
}

/** The button that confirms the suggested type. @param {any} found */
function offerConfirmation(found) {
  const button = byId("confirm");
  if (!button) return;
  button.hidden = !found.doc_type || found.doc_type_confirmed;
  button.textContent = found.doc_type ? t("document_type.confirm", { type: typeName(found.doc_type) }) : "";
  button.dataset.type = found.doc_type ?? "";
}

/**
 * @param {any} found the document
 * @param {any} said its classifications and confirmations
 * @param {((folderId: string) => void) | null} move moves it to another folder; null without permission
 */
export async function showType(found, said, move) {
  byId("type-word").textContent = found.doc_type ? typeName(found.doc_type) : t("document_type.unknown");
  byId("type-state").textContent = state(found, said);
  byId("type-state").dataset.kind = found.doc_type_confirmed ? "final" : "partial";
  setText(byId("type-said"), note(found, said));
  why(found, said);
  offerConfirmation(found);
  await suggestFolder(found, said, move);
}

/** Set up the form that changes the type. @param {string} path of the document @param {() => Promise<void>} reload */
export function typeForm(path, reload) {
  const form = byId("change-type");
  if (!form) return;
  const set = async (type) => {
    setText(byId("type-problem"), "");
    try {
      await call("PUT", `${path}/doc_type`, { json: { doc_type: type } });
      form.reset();
      await reload();
      setText(byId("type-said"), t("document_type.saved"));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      showProblem(byId("type-problem"), error);
    }
  };
  byId("confirm").addEventListener("click", () => set(byId("confirm").dataset.type));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    set(byId("new-type").value);
  });
}
