/** The list of documents: selected or dropped files are uploaded one after the other. */

import "./page.js";
import { base, call, Problem, showProblem } from "./api.js";
import { acceptFiles, byId, el, setText } from "./dom.js";
import { bytes, t } from "./i18n.js";
import { upload } from "./upload.js";

const NARROW = "(max-width: 52rem)";
const section = byId("upload");
const limits = section && JSON.parse(section.dataset.limits);
const tally = { done: 0, again: 0, bad: 0, all: 0 };
/** @type {Promise<void>} ends with the last queued upload */
let uploads = Promise.resolve();

const isBusy = () => tally.done + tally.again + tally.bad < tally.all;

function summarize() {
  const n = tally.all - (tally.done + tally.again + tally.bad);
  setText(byId("uploaded"), isBusy() ? t("upload.busy", { n: tally.all - n, total: tally.all }) : t("upload.summary", tally));
  byId("refresh").hidden = isBusy() || !tally.done;
}

/** The error message of a file that cannot be uploaded, else an empty string. @param {File} file */
function wrong(file) {
  if (!file.size) return t("upload.empty");
  return file.size > limits.file ? t("upload.too_large", { max: bytes(limits.file) }) : "";
}

/** A file in the list of uploads, with its progress and result. */
class Row {
  /** @param {File} file */
  constructor(file) {
    this.file = file;
    this.name = el("span", { class: "long" }, file.name);
    this.bar = el("progress", { max: "1", value: "0", "aria-label": t("upload.progress", { name: file.name }) });
    this.said = el("span", { class: "said" }, t("upload.waiting"));
    this.item = el("li", {}, this.name, el("small", {}, bytes(file.size)), this.said, this.bar);
    byId("uploads").append(this.item);
  }

  /** Upload the file after those queued before it. */
  queue() {
    tally.all += 1;
    summarize();
    uploads = uploads.then(() => this.send()).then(summarize);
  }

  async send() {
    try {
      const problem = wrong(this.file);
      if (problem) return this.fail(problem);
      this.end(await upload(this.file, limits, (key, share) => this.show(t(key), share)));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.fail(error.message, () => this.queue());
      if (error.status === 401) showProblem(this.said, error);
    }
  }

  /** @param {string} text @param {number} [share] unknown if missing */
  show(text, share) {
    this.said.textContent = text;
    this.bar.hidden = false;
    if (share === undefined) this.bar.removeAttribute("value");
    else this.bar.value = share;
  }

  end({ documentId, isNew }) {
    tally[isNew ? "done" : "again"] += 1;
    this.item.dataset.end = isNew ? "done" : "again";
    this.said.textContent = t(isNew ? "upload.done" : "upload.duplicate");
    this.bar.hidden = true;
    this.name.replaceChildren(el("a", { href: `${base}/documents/${documentId}` }, this.file.name));
  }

  /** @param {string} why @param {() => void} [again] */
  fail(why, again) {
    tally.bad += 1;
    this.item.dataset.end = "bad";
    this.said.textContent = why;
    this.bar.hidden = true;
    if (again) this.said.append(" ", this.button(again));
  }

  button(again) {
    const label = { type: "button", class: "plain", "aria-label": t("upload.retry", { name: this.file.name }) };
    const retry = () => {
      tally.bad -= 1;
      tally.all -= 1;
      delete this.item.dataset.end;
      this.show(t("upload.waiting"), 0);
      again();
    };
    return el("button", { ...label, click: retry }, t("rerun.button"));
  }
}

/** @param {Iterable<File>} files */
function choose(files) {
  for (const file of files) new Row(file).queue();
}

function uploadForm() {
  byId("files-hint").textContent = t("upload.hint", { max: bytes(limits.file) });
  acceptFiles(byId("drop"), byId("files"), choose);
  addEventListener("beforeunload", (event) => isBusy() && event.preventDefault());
}

/** @param {HTMLFormElement} form */
function folderForm(form) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const json = { name: byId("folder-name").value.trim(), parent_id: form.dataset.parent || null };
    try {
      const answer = await call("POST", "/v1/documents/folders", { json });
      location.assign(`?folder=${(await answer.json()).node_id}`);
    } catch (error) {
      showProblem(byId("folder-problem"), error);
    }
  });
}

if (matchMedia(NARROW).matches) byId("folders").open = false;
if (section) uploadForm();
if (byId("new-folder")) folderForm(byId("new-folder"));
