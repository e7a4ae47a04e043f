/** How a document was read, and how it is being read just now. */

import { base, call, Problem } from "./api.js";
import { el, say, the } from "./dom.js";
import { ended, Follower } from "./follow.js";
import { fullTime, number, progress, t, tOr } from "./i18n.js";
import { leaf, leafState, leafTitle } from "./page_text.js";
import { Snapshots } from "./values.js";

const ACTIVE = ["queued", "running"];
const FAILED = ["failed", "blocked"];
const PICTURES = 30;
/** Jobs that are followed, or were, and those that have ended: what has ended is not followed again. */
const followed = new Set();
const over = new Set();
/** The one that is shown: who asks for another reading watches that. @type {Live | null} */
let current = null;

/** @param {any} one an extraction */
const isActive = (one) => ACTIVE.includes(one.status);

/** Whether somebody reads it just now, or soon. @param {any[]} extractions */
export const isBeingRead = (extractions) => extractions.some((one) => isActive(one) && !over.has(one.job_id));

/** Why it could not be read. @param {any} one */
const reason = (one) => tOr(`reason.${one.error_code}`, one.error_message || one.error_code || "");

/** @param {any} one */
function line(one) {
  const facts = [
    t(`engine.${one.engine}`),
    fullTime(one.created_at),
    one.actual_pages === null ? "" : `${t("documents.pages")}: ${number(one.actual_pages)}`,
    one.actual_cost_cents ? `${t("extraction.cost")}: ${t("extraction.cents", { n: number(one.actual_cost_cents) })}` : "",
  ];
  const chip = el("span", { class: "chip", "data-status": one.status }, t(`status.${one.status}`));
  const more = [FAILED.includes(one.status) ? reason(one) : "", ...one.warnings.map((code) => tOr(`reason.${code}`, code))];
  const said = more.filter(Boolean).map((text) => el("span", { class: "hint" }, text));
  return el("li", {}, chip, " ", el("span", {}, facts.filter(Boolean).join(" · ")), ...said);
}

/** Pages that are only pictures. @param {any} found @param {any[]} extractions */
function pictures(found, extractions, may) {
  const shown = extractions.find((one) => one.extraction_id === found.extraction_id);
  const which = (found.status === "needs_ocr" && shown?.result_json?.needs_ocr) || [];
  const told = which.slice(0, PICTURES).join(", ") + (which.length > PICTURES ? " …" : "");
  the("pictures").hidden = which.length === 0;
  the("pictures-which").textContent = t("extraction.images", { pages: told });
  the("recognize").hidden = !may.write;
}

/** @param {any} found the document @param {any[]} extractions the newest first @param {{write: boolean}} may */
export function showReadings(found, extractions, may) {
  const [newest] = extractions;
  the("extractions").replaceChildren(...extractions.map(line));
  the("history").hidden = extractions.length === 0;
  the("never").hidden = extractions.length > 0;
  say(the("failure"), newest && FAILED.includes(newest.status) ? reason(newest) : "");
  pictures(found, extractions, may);
}

/** Whether they may see a job, and it is still kept. @param {string} jobId */
async function isThere(jobId) {
  try {
    return Boolean(await call("GET", `/v1/jobs/${jobId}`));
  } catch (error) {
    if (error instanceof Problem) return false;
    throw error;
  }
}

/** The pages of a job as they come. */
class Live {
  /** @param {string} jobId @param {() => Promise<void>} reload when it has ended */
  constructor(jobId, reload) {
    this.jobId = jobId;
    this.reload = reload;
    this.snapshots = null;
    current = this;
    the("to-job").href = `${base}/jobs/${jobId}`;
    the("live-pages").replaceChildren();
    the("live-pages-title").hidden = true;
    the("live").hidden = false;
  }

  /** @param {any} job */
  async show(job) {
    if (ended(job)) return this.end();
    if (current !== this) return;
    the("says").textContent = t(job.status === "queued" ? "extraction.queued" : "extraction.running");
    the("progress").value = job.progress_percent;
    the("percent").textContent = `${progress(job)} %`;
    if (job.result_id) await this.pages(job);
  }

  async pages(job) {
    this.snapshots ??= new Snapshots(the("live-pages"), job.result_id, job.job_type);
    await this.snapshots.update(job.result_seq);
    the("live-pages-title").hidden = this.snapshots.count === 0;
  }

  async end() {
    over.add(this.jobId);
    if (current === this) the("live").hidden = true;
    await this.reload();
  }
}

/**
 * Watch it being read, if somebody reads it.
 * @param {any[]} extractions
 * @param {string[]} names the types of events
 * @param {() => Promise<void>} reload when it has ended
 */
export async function watch(extractions, names, reload) {
  const jobId = extractions.find((one) => isActive(one) && one.job_id && !followed.has(one.job_id))?.job_id;
  if (!jobId) return;
  followed.add(jobId);
  if (!(await isThere(jobId))) return;
  const live = new Live(jobId, reload);
  await new Follower(jobId, names, {
    job: (job) => live.show(job),
    note: (text) => say(the("note"), text),
    offline: (is) => (the("offline").hidden = !is),
  }).start();
}

const AT_ONCE = 20;
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
  the("text-before").hidden = from === 0;
  the("text-after").hidden = to === pages.length;
}

function before() {
  const begin = Math.max(0, from - AT_ONCE);
  the("pages").prepend(...pages.slice(begin, from).map(article));
  from = begin;
  ends();
}

function after() {
  const end = Math.min(pages.length, to + AT_ONCE);
  the("pages").append(...pages.slice(to, end).map(article));
  to = end;
  ends();
}

/** Show the pages around one. @param {number} place in the list */
function around(place) {
  the("pages").replaceChildren();
  from = to = Math.max(0, Math.min(place, pages.length - 1));
  after();
}

/** Turn to a page. @param {number} number */
function turn(number) {
  const place = pages.findIndex((page) => page.number === number);
  if (place < 0) return;
  if (place < from || place >= to) around(place);
  the(`page-${number}`).scrollIntoView();
  the(`page-${number}`).focus({ preventScroll: true });
}

/** Turn to the page that the address names. */
function follow() {
  const named = location.hash.match(/^#page-(\d{1,9})$/);
  if (named) turn(Number(named[1]));
}

/** Read the text, and show it. @param {string} path of the document */
export async function showText(path) {
  pages = (await (await call("GET", `${path}/elements`)).json()).pages;
  the("text").hidden = pages.length === 0;
  the("text-none").hidden = pages.length > 0;
  the("text-go").hidden = pages.length < 2;
  the("text-page").max = `${pages.length}`;
  the("text-of").textContent = t("text.of", { n: pages.length });
  around(0);
  follow();
}

/** No text, and a word about it if nobody reads it just now. @param {boolean} isRead */
export function showNoText(isRead) {
  the("text").hidden = true;
  the("text-none").hidden = isRead;
}

the("text-before").addEventListener("click", before);
the("text-after").addEventListener("click", after);
the("text-go").addEventListener("submit", (event) => {
  event.preventDefault();
  const number = the("text-page").valueAsNumber;
  history.replaceState(null, "", `#page-${number}`);
  turn(number);
});
addEventListener("hashchange", follow);
