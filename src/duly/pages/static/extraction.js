/** The extractions of a document, finished and running, and its text. */

import { base, call, Problem } from "./api.js";
import { byId, el, setText } from "./dom.js";
import { ended, Follower } from "./follow.js";
import { fullTime, number, progress, t, textOr } from "./i18n.js";
import { leaf, leafState, leafTitle } from "./page_text.js";
import { Snapshots } from "./values.js";

const ACTIVE = ["queued", "running"];
const FAILED = ["failed", "blocked"];
const MAX_PAGES_LISTED = 30;
/** Jobs that are or were followed, and those that ended: an ended job is not followed again. */
const followed = new Set();
const over = new Set();
/** The displayed extraction: the newest replaces it. @type {Live | null} */
let current = null;

/** @param {any} one an extraction */
const isActive = (one) => ACTIVE.includes(one.status);

/** Whether an extraction is queued or running. @param {any[]} extractions */
export const isExtracting = (extractions) => extractions.some((one) => isActive(one) && !over.has(one.job_id));

/** The reason of a failure. @param {any} one */
const reason = (one) => textOr(`reason.${one.error_code}`, one.error_message || one.error_code || "");

/** @param {any} one */
function line(one) {
  const facts = [
    t(`engine.${one.engine}`),
    fullTime(one.created_at),
    one.actual_pages === null ? "" : `${t("documents.pages")}: ${number(one.actual_pages)}`,
    one.actual_cost_cents ? `${t("extraction.cost")}: ${t("extraction.cents", { n: number(one.actual_cost_cents) })}` : "",
  ];
  const chip = el("span", { class: "chip", "data-status": one.status }, t(`status.${one.status}`));
  const more = [FAILED.includes(one.status) ? reason(one) : "", ...one.warnings.map((code) => textOr(`reason.${code}`, code))];
  const said = more.filter(Boolean).map((text) => el("span", { class: "hint" }, text));
  return el("li", {}, chip, " ", el("span", {}, facts.filter(Boolean).join(" · ")), ...said);
}

/** The pages that need OCR. @param {any} found @param {any[]} extractions */
function pictures(found, extractions, may) {
  const shown = extractions.find((one) => one.extraction_id === found.extraction_id);
  const which = (found.status === "needs_ocr" && shown?.result_json?.needs_ocr) || [];
  const listed = which.slice(0, MAX_PAGES_LISTED).join(", ") + (which.length > MAX_PAGES_LISTED ? " …" : "");
  byId("pictures").hidden = which.length === 0;
  byId("pictures-which").textContent = t("extraction.images", { pages: listed });
  byId("recognize").hidden = !may.write;
}

/** @param {any} found the document @param {any[]} extractions the newest first @param {{write: boolean}} may */
export function showExtractions(found, extractions, may) {
  const [newest] = extractions;
  byId("extractions").replaceChildren(...extractions.map(line));
  byId("history").hidden = extractions.length === 0;
  byId("never").hidden = extractions.length > 0;
  setText(byId("failure"), newest && FAILED.includes(newest.status) ? reason(newest) : "");
  pictures(found, extractions, may);
}

/** Whether the job exists and is visible. @param {string} jobId */
async function isVisible(jobId) {
  try {
    return Boolean(await call("GET", `/v1/jobs/${jobId}`));
  } catch (error) {
    if (error instanceof Problem) return false;
    throw error;
  }
}

/** The pages of a running extraction. */
class Live {
  /** @param {string} jobId @param {() => Promise<void>} reload when it has ended */
  constructor(jobId, reload) {
    this.jobId = jobId;
    this.reload = reload;
    this.snapshots = null;
    current = this;
    byId("to-job").href = `${base}/jobs/${jobId}`;
    byId("live-pages").replaceChildren();
    byId("live-pages-title").hidden = true;
    byId("live").hidden = false;
  }

  /** @param {any} job */
  async show(job) {
    if (ended(job)) return this.end();
    if (current !== this) return;
    byId("says").textContent = t(job.status === "queued" ? "extraction.queued" : "extraction.running");
    byId("progress").value = job.progress_percent;
    byId("percent").textContent = `${progress(job)} %`;
    if (job.result_id) await this.pages(job);
  }

  async pages(job) {
    this.snapshots ??= new Snapshots(byId("live-pages"), job.result_id, job.job_type);
    await this.snapshots.update(job.result_seq);
    byId("live-pages-title").hidden = this.snapshots.count === 0;
  }

  async end() {
    over.add(this.jobId);
    if (current === this) byId("live").hidden = true;
    await this.reload();
  }
}

/**
 * Follow the running extraction, if there is one.
 * @param {any[]} extractions
 * @param {string[]} names the types of events
 * @param {() => Promise<void>} reload when it has ended
 */
export async function watch(extractions, names, reload) {
  const jobId = extractions.find((one) => isActive(one) && one.job_id && !followed.has(one.job_id))?.job_id;
  if (!jobId) return;
  followed.add(jobId);
  if (!(await isVisible(jobId))) return;
  const live = new Live(jobId, reload);
  await new Follower(jobId, names, {
    job: (job) => live.show(job),
    note: (text) => setText(byId("note"), text),
    offline: (is) => (byId("offline").hidden = !is),
  }).start();
}

const PAGES_PER_STEP = 20;
/** @type {any[]} */
let pages = [];
let [from, to] = [0, 0];

/** @param {any} page */
function article(page) {
  const head = el("h3", {}, leafTitle(page), " ", leafState(page));
  return el("article", { id: `page-${page.number}`, class: "page", tabindex: "-1" }, head, leaf(page));
}

/** Whether there is more above and below. */
function ends() {
  byId("text-before").hidden = from === 0;
  byId("text-after").hidden = to === pages.length;
}

function before() {
  const begin = Math.max(0, from - PAGES_PER_STEP);
  byId("pages").prepend(...pages.slice(begin, from).map(article));
  from = begin;
  ends();
}

function after() {
  const end = Math.min(pages.length, to + PAGES_PER_STEP);
  byId("pages").append(...pages.slice(to, end).map(article));
  to = end;
  ends();
}

/** Show the pages from an index on. @param {number} index */
function around(index) {
  byId("pages").replaceChildren();
  from = to = Math.max(0, Math.min(index, pages.length - 1));
  after();
}

/** Go to a page. @param {number} number */
function turn(number) {
  const index = pages.findIndex((page) => page.number === number);
  if (index < 0) return;
  if (index < from || index >= to) around(index);
  byId(`page-${number}`).scrollIntoView();
  byId(`page-${number}`).focus({ preventScroll: true });
}

/** Go to the page of the URL fragment. */
function follow() {
  const named = location.hash.match(/^#page-(\d{1,9})$/);
  if (named) turn(Number(named[1]));
}

/** Fetch and show the text. @param {string} path of the document */
export async function showText(path) {
  pages = (await (await call("GET", `${path}/elements`)).json()).pages;
  byId("text").hidden = pages.length === 0;
  byId("text-none").hidden = pages.length > 0;
  byId("text-go").hidden = pages.length < 2;
  byId("text-page").max = `${pages.length}`;
  byId("text-of").textContent = t("text.of", { n: pages.length });
  around(0);
  follow();
}

/** Hide the text, with a note unless an extraction is running. @param {boolean} isRunning */
export function showNoText(isRunning) {
  byId("text").hidden = true;
  byId("text-none").hidden = isRunning;
}

byId("text-before").addEventListener("click", before);
byId("text-after").addEventListener("click", after);
byId("text-go").addEventListener("submit", (event) => {
  event.preventDefault();
  const number = byId("text-page").valueAsNumber;
  history.replaceState(null, "", `#page-${number}`);
  turn(number);
});
addEventListener("hashchange", follow);
