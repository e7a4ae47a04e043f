/** The analysis form: files are uploaded, texts are part of the request. */

import { call } from "./api.js";
import { acceptFiles, byId, el, setText, submitForm } from "./dom.js";
import { bytes, t } from "./i18n.js";

/** @type {File[]} */
let files = [];

/** The files so far, each with a way to take it back. */
function show() {
  byId("chosen").replaceChildren(
    ...files.map((file) => {
      const remove = () => {
        files = files.filter((other) => other !== file);
        show();
        byId("files").focus();
      };
      const button = { type: "button", class: "plain", "aria-label": t("analysis.remove", { name: file.name }) };
      return el("li", {}, `${file.name} `, el("small", {}, bytes(file.size)), el("button", { ...button, click: remove }, "×"));
    }),
  );
  byId("analysis").dispatchEvent(new Event("change"));
}

/** @param {FileList} more */
function choose(more) {
  files = [...files, ...more];
  show();
}

function addText() {
  const n = document.querySelectorAll("#analysis textarea").length + 1;
  const id = `text-${n}`;
  const field = el("textarea", { id, rows: "6" });
  byId("more-texts").append(el("div", { class: "field" }, el("label", { for: id }, t("analysis.text.nth", { n })), field));
  field.focus();
}

/** Make the names of the sources unique. @param {{name: string}[]} sources */
function named(sources) {
  const seen = new Set();
  for (const source of sources) {
    const [, stem, end] = source.name.slice(-90).match(/^(.*?)(\.[^.]*)?$/s);
    for (let n = 2; seen.has(source.name); n += 1) source.name = `${stem} (${n})${end ?? ""}`;
    seen.add(source.name);
  }
  return sources;
}

function texts() {
  const given = [...document.querySelectorAll("#analysis textarea")].map((field) => field.value);
  return given.filter((text) => text.trim()).map((text, n) => ({ name: t("analysis.text.name", { n: n + 1 }), text }));
}

/** The error message of an invalid form, else an empty string. @param {any} limits */
function wrong(limits, chosen) {
  const count = files.length + texts().length;
  const large = files.find((file) => file.size > limits.file);
  const empty = files.find((file) => !file.size);
  if (!count) return t("analysis.nothing");
  if (!chosen.length) return t("analysis.no_module");
  if (count > limits.sources) return t("analysis.too_many", { max: limits.sources });
  if (large) return t("analysis.too_large", { name: large.name, max: bytes(limits.file) });
  return empty ? t("analysis.empty", { name: empty.name }) : "";
}

/** @param {Blob} content */
async function upload(content) {
  const headers = { "content-type": "application/octet-stream" };
  return (await (await call("POST", "/v1/blobs", { body: content, headers })).json()).blob;
}

/** Texts that are too long to travel inline are uploaded like files. */
async function collected(limits, report) {
  const given = texts();
  const inline = given.reduce((sum, source) => sum + new Blob([source.text]).size, 0) <= limits.inline / 2;
  const uploads = [
    ...files.map((file) => ({ name: file.name, content: file })),
    ...(inline ? [] : given.map(({ name, text }) => ({ name, content: new Blob([text]) }))),
  ];
  const kept = [];
  for (const [n, { name, content }] of uploads.entries()) {
    report(t("analysis.uploading", { n: n + 1, total: uploads.length }));
    kept.push({ name, blob: await upload(content) });
  }
  return named([...kept, ...(inline ? given : [])]);
}

/** Bring the form to life. @param {HTMLFormElement} form */
export function analysis(form) {
  const limits = JSON.parse(form.dataset.limits);
  acceptFiles(byId("drop"), byId("files"), choose);
  byId("add-text").addEventListener("click", addText);
  submitForm(form, byId("analysis-problem"), async (report) => {
    const chosen = [...form.querySelectorAll("[name=modules]:checked")].map((box) => box.value);
    const problem = wrong(limits, chosen);
    setText(byId("analysis-problem"), problem);
    if (problem) return null;
    const payload = { sources: await collected(limits, report), modules: chosen, language: byId("language").value };
    return { job_type: "analyze.run", payload };
  });
}
