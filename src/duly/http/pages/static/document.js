/** The page of a document: what it is, how it is read, its text and its versions. */

import "./page.js";
import { nameOf } from "./analysis.js";
import { base, call, get, go, showProblem } from "./api.js";
import { readingAgain } from "./document_engines.js";
import { isBeingRead, showReadings, watch } from "./document_reading.js";
import { askingElsewhere, changing, newVersion } from "./document_change.js";
import { showNoText, showText } from "./document_text.js";
import { sayingType, showType } from "./document_type.js";
import { el, tell, the, timeOf } from "./dom.js";
import { bytes, fullTime, number, t, tOr } from "./words.js";

const page = the("document");
const path = `/v1/documents/${page.dataset.document}`;
const names = JSON.parse(page.dataset.names);
const may = JSON.parse(page.dataset.may);
/** The document as it is known. @type {any} */
let found = null;
/** The reading that is shown: text is fetched again only if it is another. */
let shown = "";

function showFacts() {
  the("status").textContent = t(`status.${found.status}`);
  the("status").dataset.status = found.status;
  tell(the("facts"), [
    [t("document.kind"), tOr(`media.${found.media_type}`, found.media_type)],
    [t("document.size"), bytes(found.size)],
    [t("documents.pages"), found.page_count === null ? "" : number(found.page_count)],
    [t("document.language"), found.language && nameOf(found.language)],
    [t("documents.created"), timeOf(found.created_at, fullTime)],
    [t("document.by"), found.created_by],
    ...Object.entries(found.metadata).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  ]);
}

/** @param {any} one */
function version(one) {
  const n = one.version;
  const href = `${base}${path}/content?version=${n}`;
  const link = el("a", { href, download: one.file_name, "aria-label": t("document.download.nth", { n }) }, one.file_name);
  const facts = [`${t("document.version")} ${n}`, bytes(one.size), fullTime(one.created_at), one.created_by];
  return el("li", {}, link, " ", el("span", { class: "hint" }, facts.join(" · ")));
}

/** Its text, if it was read. @param {any[]} extractions */
async function showPages(extractions) {
  const source = extractions.find((one) => one.extraction_id === found.extraction_id && one.result_json);
  if (!source) return showNoText(isBeingRead(extractions));
  if (source.extraction_id === shown) return;
  shown = source.extraction_id;
  await showText(path);
}

/** @param {string} place */
async function move(place) {
  try {
    await call("PATCH", path, { json: { node_id: place } });
    location.reload();
  } catch (error) {
    showProblem(the("problem"), error);
  }
}

/** Everything as it is now. */
async function load() {
  try {
    const parts = ["", "/extractions", "/classification", "/versions"].map((part) => get(path + part));
    const [document, { extractions }, said, { versions }] = await Promise.all(parts);
    found = document;
    showFacts();
    the("versions").replaceChildren(...versions.map(version));
    showReadings(found, extractions, may);
    await showType(found, said, may.write ? move : null);
    await showPages(extractions);
    // Not waited for: it goes on as long as the document is read.
    watch(extractions, names, load);
  } catch (error) {
    showProblem(the("problem"), error);
  }
}

async function remove() {
  try {
    await call("DELETE", `${path}?reason=${encodeURIComponent(the("reason").value.trim())}`);
    go("/documents");
  } catch (error) {
    showProblem(the("problem"), error);
  }
}

the("delete")?.addEventListener("click", () => {
  // Else Escape would mean what the last answer was.
  the("sure").returnValue = "no";
  the("sure").showModal();
});
the("sure")?.addEventListener("close", () => the("sure").returnValue === "yes" && remove());
sayingType(path, load);
readingAgain(path, () => found, load);
changing(path);
newVersion(load);
askingElsewhere(path);
await load();
