/** The page of a document: what it is, how it is read, its text and its versions. */

import "./page.js";
import { nameOf } from "./analysis.js";
import { base, call, get, go, Problem, showProblem } from "./api.js";
import { sayingType, showType } from "./document_type.js";
import { complain, el, say, sending, takingFiles, tell, the, timeOf } from "./dom.js";
import { isBeingRead, showNoText, showReadings, showText, watch } from "./extraction.js";
import { bytes, fullTime, number, t, tOr } from "./i18n.js";
import { upload } from "./upload.js";

/** What stands behind the sign: JSON where it is some, else a text. @param {string} text */
function value(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Metadata of lines; null, and a word about it, if one is none. @param {string} text */
function facts(text) {
  if (text.trim().startsWith("{") && typeof value(text) === "object") return value(text);
  const lines = text.split("\n").filter((line) => line.trim());
  const wrong = lines.find((line) => line.indexOf("=") < 1);
  if (wrong === undefined) return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")).trim(), value(line.slice(line.indexOf("=") + 1))]));
  complain(the("change-form"), t("change.metadata.wrong", { line: wrong }));
  the("change-metadata").focus();
  return null;
}

/** What is different from when the page came. */
function changes() {
  const [name, folder, metadata] = ["name", "folder", "metadata"].map((part) => the(`change-${part}`));
  const json = {};
  if (name.value.trim() !== name.defaultValue) json.name = name.value.trim();
  if (folder.value !== the("change-form").dataset.folder) json.node_id = folder.value || null;
  if (metadata.value === metadata.defaultValue) return json;
  const said = facts(metadata.value);
  return said && { ...json, metadata: said };
}

/** @param {string} path of the document */
export function changing(path) {
  sending(the("change-form"), async () => {
    const json = changes();
    if (json === null) return;
    if (Object.keys(json).length) await call("PATCH", path, { json });
    location.reload();
  });
}

/** @param {() => Promise<void>} reload */
export function newVersion(reload) {
  const drop = the("version");
  if (!drop) return;
  const limits = JSON.parse(drop.dataset.limits);
  const [bar, said] = [the("version-progress"), the("version-said")];
  const report = (key, share) => {
    bar.hidden = false;
    if (share === undefined) bar.removeAttribute("value");
    else bar.value = share;
    say(said, t(key));
  };
  const end = async ({ documentId, isNew }) => {
    if (isNew) {
      say(said, t("upload.done"));
      return reload();
    }
    say(said, t(documentId === limits.document_id ? "version.same" : "version.duplicate"));
    if (documentId !== limits.document_id) said.append(el("a", { href: `${base}/documents/${documentId}` }, t("version.open")));
  };
  takingFiles(drop, the("version-file"), async ([file]) => {
    if (!file || !bar.hidden) return;
    if (!file.size) return say(said, t("upload.empty"));
    if (file.size > limits.file) return say(said, t("upload.too_large", { max: bytes(limits.file) }));
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
export function askingElsewhere(path) {
  sending(the("elsewhere-form"), async () => {
    const answer = await call("POST", `${path}/classification`, { json: { engine: "remote", consent: the("elsewhere-consent").checked } });
    go(`/jobs/${(await answer.json()).job_id}`);
  });
}

/** What it would cost. @param {number} cents a page @param {number | null} pages */
function estimate(cents, pages) {
  if (pages === null) return t("extraction.price", { cents: number(cents) });
  // As the service counts: whole cents, rounded up.
  const cost = Math.ceil(Number((pages * cents).toFixed(6)));
  return t("extraction.estimate", { cents: number(cost), pages: number(pages) });
}

/** Ask for it. @param {string} path of the document @param {object} json @param {HTMLElement} problem */
async function ask(path, json, problem, reload) {
  try {
    await call("POST", `${path}/extractions`, { json });
    the("again").open = false;
    the("read").reset();
    the("elsewhere").hidden = true;
    await reload();
  } catch (error) {
    showProblem(problem, error);
  }
}

/**
 * Let people have it read.
 * @param {string} path of the document
 * @param {() => any} current the document as it is known
 * @param {() => Promise<void>} reload
 */
export function readingAgain(path, current, reload) {
  const form = the("read");
  if (!form) return;
  const cents = JSON.parse(form.dataset.cents);
  const engine = () => form.elements.engine.value;
  form.addEventListener("change", () => {
    const price = cents[engine()];
    the("elsewhere").hidden = price === undefined;
    the("estimate").textContent = price === undefined ? "" : estimate(price, current().page_count);
    say(the("read-problem"), "");
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const [goes, consent] = [engine() in cents, the("consent").checked];
    if (!goes || consent) return ask(path, { engine: engine(), consent: goes && consent }, the("read-problem"), reload);
    say(the("read-problem"), t("extraction.no_consent"));
    the("consent").focus();
  });
  the("recognize").addEventListener("click", () => ask(path, { engine: "hires" }, the("problem"), reload));
}

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
