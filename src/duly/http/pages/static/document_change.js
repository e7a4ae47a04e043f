/** Changing a document: another name, folder or metadata, a new version; and asking elsewhere what it is. */

import { base, call, go, Problem, showProblem } from "./api.js";
import { el, say, the } from "./dom.js";
import { takingFiles } from "./drop.js";
import { complain, sending } from "./forms.js";
import { upload } from "./upload.js";
import { bytes, t } from "./words.js";

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
    say(said, t(documentId === limits.document_id ? "version.same" : "version.there"));
    if (documentId !== limits.document_id) said.append(el("a", { href: `${base}/documents/${documentId}` }, t("version.open")));
  };
  takingFiles(drop, the("version-file"), async ([file]) => {
    if (!file || !bar.hidden) return;
    if (!file.size) return say(said, t("upload.empty"));
    if (file.size > limits.file) return say(said, t("upload.too_large", { most: bytes(limits.file) }));
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
