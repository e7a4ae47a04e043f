/** What a document is: found out and why, or said by somebody; and the way to say it. */

import { call, get, Problem, showProblem } from "./api.js";
import { el, say, the } from "./dom.js";
import { fullTime, percent, t, tOr } from "./i18n.js";

const SHOWN = 5;

/** A type in words; one of the org's own is its name. @param {string} type */
export const typeWord = (type) => tOr(`doctype.${type}`, type);

/** How sure it is; nothing where that is not sure enough. @param {any} found @param {any} said */
function state(found, said) {
  if (!found.doc_type || (said.classifications[0]?.review && !found.doc_type_confirmed)) return "";
  return found.doc_type_confirmed ? t("document_type.confirmed") : t("document_type.suggested", { share: percent(found.doc_type_confidence ?? 0) });
}

/** @param {any} found @param {any} said */
function words(found, said) {
  const [last] = said.confirmations;
  if (found.doc_type_confirmed && last) return t("document_type.confirmed_by", { name: last.confirmed_by, time: fullTime(last.confirmed_at) });
  return said.classifications[0]?.review && !found.doc_type_confirmed ? t("document_type.review") : "";
}

/** @param {any} one @param {string} type that is shown */
function evidence(one, type) {
  const where = one.page ? [el("a", { href: `#page-${one.page}` }, t("text.page", { n: one.page })), " · "] : [];
  const other = one.doc_type === type ? "" : ` · ${t("document_type.evidence_for", { type: typeWord(one.doc_type) })}`;
  const term = el("strong", {}, one.term.replaceAll("*", "…"));
  return el("li", {}, term, " ", el("q", {}, one.text), " ", el("small", {}, ...where, t(`zone.${one.zone}`), other));
}

/** @param {any} found @param {any} said */
function why(found, said) {
  const told = [...(said.classifications[0]?.evidence ?? [])].sort((one, other) => other.weight - one.weight).slice(0, SHOWN);
  the("evidence").replaceChildren(...told.map((one) => evidence(one, found.doc_type)));
  the("type-why").hidden = told.length === 0;
}

/** Where documents of its type belong, if that is elsewhere. @param {any} found @param {any} said */
async function belonging(found, said, move) {
  const place = said.classifications[0]?.suggested_node;
  the("belongs").hidden = true;
  if (!place || place === found.node_id) return;
  const folder = await get(`/v1/documents/folders/${place}`);
  const button = move ? [" ", el("button", { type: "button", class: "plain", click: () => move(place) }, t("document_type.move"))] : [];
  the("belongs").replaceChildren(t("document_type.folder", { path: folder.path }), ...button);
  the("belongs").hidden = false;
}

/** The button that agrees to what was found out. @param {any} found */
function offer(found) {
  const button = the("confirm");
  if (!button) return;
  button.hidden = !found.doc_type || found.doc_type_confirmed;
  button.textContent = found.doc_type ? t("document_type.confirm", { type: typeWord(found.doc_type) }) : "";
  button.dataset.type = found.doc_type ?? "";
}

/**
 * @param {any} found the document
 * @param {any} said everything that was said of it
 * @param {((place: string) => void) | null} move puts it into another folder, if they may
 */
export async function showType(found, said, move) {
  the("type-word").textContent = found.doc_type ? typeWord(found.doc_type) : t("document_type.unknown");
  the("type-state").textContent = state(found, said);
  the("type-state").dataset.kind = found.doc_type_confirmed ? "final" : "partial";
  say(the("type-said"), words(found, said));
  why(found, said);
  offer(found);
  await belonging(found, said, move);
}

/** Let people say what it is. @param {string} path of the document @param {() => Promise<void>} reload */
export function sayingType(path, reload) {
  const form = the("change-type");
  if (!form) return;
  const set = async (type) => {
    say(the("type-problem"), "");
    try {
      await call("PUT", `${path}/doc_type`, { json: { doc_type: type } });
      form.reset();
      await reload();
      say(the("type-said"), t("document_type.saved"));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      showProblem(the("type-problem"), error);
    }
  };
  the("confirm").addEventListener("click", () => set(the("confirm").dataset.type));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    set(the("new-type").value);
  });
}
