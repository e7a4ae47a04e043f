/** The page of a document: metadata, type, text extraction, text and versions. */

import "./page.js";
import { nameOf } from "./analysis.js";
import { base, call, get, go, Problem, showProblem } from "./api.js";
import { typeForm, showType } from "./document_type.js";
import { acceptFiles, byId, el, onSubmit, renderFacts, setText, showFormError, timeOf } from "./dom.js";
import { isExtracting, showNoText, showExtractions, showText, watch } from "./extraction.js";
import { bytes, fullTime, number, t, textOr } from "./i18n.js";
import { upload } from "./upload.js";

/** Parse a metadata value: JSON if it is valid, else the text. @param {string} text */
function value(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Parse metadata lines; show an error and return null if one is invalid. @param {string} text */
function facts(text) {
  if (text.trim().startsWith("{") && typeof value(text) === "object") return value(text);
  const lines = text.split("\n").filter((line) => line.trim());
  const wrong = lines.find((line) => line.indexOf("=") < 1);
  if (wrong === undefined) return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")).trim(), value(line.slice(line.indexOf("=") + 1))]));
  showFormError(byId("change-form"), t("change.metadata.wrong", { line: wrong }));
  byId("change-metadata").focus();
  return null;
}

/** The changed fields of the form; null if one is invalid. */
function changes() {
  const [name, folder, metadata] = ["name", "folder", "metadata"].map((part) => byId(`change-${part}`));
  const json = {};
  if (name.value.trim() !== name.defaultValue) json.name = name.value.trim();
  if (folder.value !== byId("change-form").dataset.folder) json.node_id = folder.value || null;
  if (metadata.value === metadata.defaultValue) return json;
  const said = facts(metadata.value);
  return said && { ...json, metadata: said };
}

/** @param {string} path of the document */
export function changeForm(path) {
  onSubmit(byId("change-form"), async () => {
    const json = changes();
    if (json === null) return;
    if (Object.keys(json).length) await call("PATCH", path, { json });
    location.reload();
  });
}

/** @param {() => Promise<void>} reload */
export function newVersion(reload) {
  const drop = byId("version");
  if (!drop) return;
  const limits = JSON.parse(drop.dataset.limits);
  const [bar, said] = [byId("version-progress"), byId("version-said")];
  const report = (key, share) => {
    bar.hidden = false;
    if (share === undefined) bar.removeAttribute("value");
    else bar.value = share;
    setText(said, t(key));
  };
  const end = async ({ documentId, isNew }) => {
    if (isNew) {
      setText(said, t("upload.done"));
      return reload();
    }
    setText(said, t(documentId === limits.document_id ? "version.same" : "version.duplicate"));
    if (documentId !== limits.document_id) said.append(el("a", { href: `${base}/documents/${documentId}` }, t("version.open")));
  };
  acceptFiles(drop, byId("version-file"), async ([file]) => {
    if (!file || !bar.hidden) return;
    if (!file.size) return setText(said, t("upload.empty"));
    if (file.size > limits.file) return setText(said, t("upload.too_large", { max: bytes(limits.file) }));
    try {
      await end(await upload(file, limits, report));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      showProblem(said, error);
    } finally {
      bar.hidden = true;
    }
  });
}

/** @param {string} path of the document */
export function remoteClassification(path) {
  onSubmit(byId("elsewhere-form"), async () => {
    const answer = await call("POST", `${path}/classification`, { json: { engine: "remote", consent: byId("elsewhere-consent").checked } });
    go(`/jobs/${(await answer.json()).job_id}`);
  });
}

/** The estimated cost. @param {number} cents a page @param {number | null} pages */
function estimate(cents, pages) {
  if (pages === null) return t("extraction.price", { cents: number(cents) });
  // The service rounds up to whole cents.
  const cost = Math.ceil(Number((pages * cents).toFixed(6)));
  return t("extraction.estimate", { cents: number(cost), pages: number(pages), n: pages });
}

/** Start an extraction. @param {string} path of the document @param {object} json @param {HTMLElement} problem */
async function extract(path, json, problem, reload) {
  try {
    await call("POST", `${path}/extractions`, { json });
    byId("again").open = false;
    byId("read").reset();
    byId("elsewhere").hidden = true;
    await reload();
  } catch (error) {
    showProblem(problem, error);
  }
}

/**
 * Set up the extraction form.
 * @param {string} path of the document
 * @param {() => any} current the document as it is known
 * @param {() => Promise<void>} reload
 */
export function extractionForm(path, current, reload) {
  const form = byId("read");
  if (!form) return;
  const cents = JSON.parse(form.dataset.cents);
  const engine = () => form.elements.engine.value;
  form.addEventListener("change", () => {
    const price = cents[engine()];
    byId("elsewhere").hidden = price === undefined;
    byId("estimate").textContent = price === undefined ? "" : estimate(price, current().page_count);
    setText(byId("read-problem"), "");
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const [goes, consent] = [engine() in cents, byId("consent").checked];
    if (!goes || consent) return extract(path, { engine: engine(), consent: goes && consent }, byId("read-problem"), reload);
    setText(byId("read-problem"), t("extraction.no_consent"));
    byId("consent").focus();
  });
  byId("recognize").addEventListener("click", () => extract(path, { engine: "hires" }, byId("problem"), reload));
}

const page = byId("document");
const path = `/v1/documents/${page.dataset.document}`;
const names = JSON.parse(page.dataset.names);
const may = JSON.parse(page.dataset.may);
/** The document as it is known. @type {any} */
let found = null;
/** The extraction whose text is displayed: the text of another one is fetched. */
let shown = "";

function showFacts() {
  byId("status").textContent = t(`status.${found.status}`);
  byId("status").dataset.status = found.status;
  renderFacts(byId("facts"), [
    [t("document.kind"), textOr(`media.${found.media_type}`, found.media_type)],
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

/** Display the extracted text, if there is one. @param {any[]} extractions */
async function showPages(extractions) {
  const source = extractions.find((one) => one.extraction_id === found.extraction_id && one.result_json);
  if (!source) return showNoText(isExtracting(extractions));
  if (source.extraction_id === shown) return;
  shown = source.extraction_id;
  await showText(path);
}

/** @param {string} folderId */
async function move(folderId) {
  try {
    await call("PATCH", path, { json: { node_id: folderId } });
    location.reload();
  } catch (error) {
    showProblem(byId("problem"), error);
  }
}

/** Load and display the document. */
async function load() {
  try {
    const parts = ["", "/extractions", "/classification", "/versions"].map((part) => get(path + part));
    const [document, { extractions }, said, { versions }] = await Promise.all(parts);
    found = document;
    showFacts();
    byId("versions").replaceChildren(...versions.map(version));
    showExtractions(found, extractions, may);
    await showType(found, said, may.write ? move : null);
    await showPages(extractions);
    // Not awaited: it ends with the extraction.
    watch(extractions, names, load);
  } catch (error) {
    showProblem(byId("problem"), error);
  }
}

async function remove() {
  try {
    await call("DELETE", `${path}?reason=${encodeURIComponent(byId("reason").value.trim())}`);
    go("/documents");
  } catch (error) {
    showProblem(byId("problem"), error);
  }
}

byId("delete")?.addEventListener("click", () => {
  // Escape keeps the last return value: reset it.
  byId("sure").returnValue = "no";
  byId("sure").showModal();
});
byId("sure")?.addEventListener("close", () => byId("sure").returnValue === "yes" && remove());
typeForm(path, load);
extractionForm(path, () => found, load);
changeForm(path);
newVersion(load);
remoteClassification(path);
await load();
