/** The page of a job: how far it is, what it has found so far, and how it ended. */

import "./page.js";
import { recall } from "./again.js";
import { base, call, go, showProblem } from "./api.js";
import { ask, el, say, tell, the, timeOf } from "./dom.js";
import { ended, Follower } from "./follow.js";
import { number, progress, t, time } from "./i18n.js";
import { Snapshots } from "./values.js";

/** What to make of a failure. @param {any} job */
function advice(job) {
  if (job.outcome === "blocked") return t("failure.blocked");
  if (job.reconciled) return t("failure.reconciled");
  const passing = t(job.retryable ? "failure.retryable" : "failure.final");
  return job.outcome === "dead" ? `${t("failure.dead")} ${job.retryable ? passing : ""}`.trim() : passing;
}

/** Have the service do it again: it has kept what was asked for. @param {any} job */
async function rerun(job) {
  const answer = await call("POST", `/v1/jobs/${job.job_id}/rerun`, { json: { reason: t("rerun.reason") } });
  go(`/jobs/${(await answer.json()).job_id}`);
}

/** How the same can be had again: operators may anywhere, others where this tab knows what it was. */
function wayOf(job, may) {
  if (may.operate) return () => rerun(job);
  const request = recall(job.job_id);
  const key = crypto.randomUUID();
  return request && (() => ask(request, key));
}

/** The same again if it is worthwhile and there is a way; else the way to a new job. @param {any} job */
function again(job, may, problem) {
  const worthwhile = job.status === "canceled" || job.retryable || job.reconciled;
  const way = worthwhile && wayOf(job, may);
  if (!way) return may.write ? el("a", { class: "button", href: `${base}/submit` }, t("rerun.new")) : "";
  const button = el("button", { type: "button", class: "main" }, t(job.status === "canceled" ? "rerun.new" : "rerun.button"));
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await way();
    } catch (error) {
      button.disabled = false;
      showProblem(problem, error);
    }
  });
  return button;
}

/** @param {any} job */
function failure(job) {
  const facts = el("dl", { class: "facts" });
  tell(facts, [
    [t("failure.class"), [job.error_class, job.error_code].filter(Boolean).join(" · ")],
    [t("failure.message"), job.error_message],
  ]);
  return [facts, el("p", {}, advice(job))];
}

/** @param {any} job */
function canceled(job) {
  const why = job.cancel_reason ? [el("p", {}, t("cancel.reason_given", { reason: job.cancel_reason }))] : [];
  return [...why, el("p", {}, t("cancel.not_resumable"))];
}

/**
 * @param {any} job that has failed, or was canceled
 * @param {{write: boolean, operate: boolean}} may
 * @param {HTMLElement} problem where it is said what is wrong
 */
export function ending(job, may, problem) {
  const told = job.status === "failed" ? failure(job) : canceled(job);
  const kind = job.status === "failed" ? "bad" : "calm";
  const way = may.write || may.operate ? [el("p", {}, again(job, may, problem))] : [];
  return el("section", { class: `notice ${kind}`, id: "ended" }, ...told, ...way);
}

const PAGE = 500;
const SHOWN = 300;

/** A list that knows how far it has read. */
export class Log {
  /** @param {HTMLElement} list @param {string} jobId */
  constructor(list, jobId) {
    this.list = list;
    this.path = `/v1/jobs/${jobId}/logs?limit=${PAGE}`;
    this.after = "";
    this.reading = null;
  }

  /** Read on, to the end. Whoever comes meanwhile waits for the same. */
  update() {
    this.reading ??= this.read().finally(() => (this.reading = null));
    return this.reading;
  }

  async read() {
    for (;;) {
      const answer = await call("GET", this.path + (this.after && `&after=${encodeURIComponent(this.after)}`));
      const page = await answer.json();
      for (const line of page.lines) this.add(line);
      this.after = page.after ?? "";
      if (page.lines.length < PAGE) return;
    }
  }

  add(line) {
    const when = timeOf(line.logged_at, time);
    const attempt = line.attempt > 1 ? ` ${t("log.attempt", { n: line.attempt })}` : "";
    const said = el("span", { class: "said" }, line.message);
    this.list.append(el("li", { "data-level": line.level }, when, `${attempt} ${line.level} `, said));
    if (this.list.childElementCount > SHOWN) this.list.firstElementChild.remove();
  }
}

const page = the("job");
const jobId = page.dataset.job;
const may = JSON.parse(page.dataset.may);
const LAST_LINES = 1500;
const log = new Log(the("lines"), jobId);
/** @type {Snapshots | null} */
let snapshots = null;

/** Its state in a sentence. @param {any} job */
function says(job) {
  if (job.cancel_requested_at && !ended(job)) return t("job_message.stopping");
  const later = Date.parse(job.run_at) > Date.now() + 1000;
  if (job.status !== "queued" || !(later || job.error_code)) return t(`job_message.${job.status}`);
  if (!later) return t("job_message.retried");
  const how = job.error_code ? "retrying" : job.attempt ? "resumes" : "scheduled";
  return t(`job_message.${how}`, { time: time(job.run_at) });
}

/** Why the last attempt failed, as long as others follow. @param {any} job */
function lastFailure(job) {
  if (ended(job) || !job.error_code) return "";
  const n = job.status === "queued" ? job.attempt : job.attempt - 1;
  return t("job.attempt.failed", { n, message: job.error_message || job.error_code });
}

/** @param {any} job */
function facts(job) {
  const counts = Object.entries(job.summary_counts).map(([name, value]) => `${t(`count.${name}`)} ${number(value)}`);
  return [
    [t("job.subject"), job.subject_id],
    [t("job.created"), timeOf(job.created_at, time)],
    [t("job.started"), timeOf(job.started_at, time)],
    [t("job.finished"), timeOf(job.completed_at, time)],
    [t("job.col.attempt"), job.attempt ? t("job.attempt.of", { n: job.attempt, max: job.max_attempts }) : null],
    [t("job.counts"), counts.join(", ")],
  ];
}

/** @param {any} job */
function showState(job) {
  const active = !ended(job);
  const stale = active && job.freshness.shown === "likely_stale";
  the("status").textContent = t(`status.${job.status}`);
  the("status").dataset.status = job.status;
  if (the("says").textContent !== says(job)) the("says").textContent = says(job);
  the("progress").value = job.progress_percent;
  the("progress").dataset.status = job.status;
  the("percent").textContent = `${progress(job)} %`;
  say(the("last-failure"), lastFailure(job));
  say(the("stale"), stale ? t("job.stale", { time: time(job.updated_at) }) : "");
  the("stay").hidden = !active;
  the("cancel").hidden = !active || !may.write || Boolean(job.cancel_requested_at);
  tell(the("facts"), facts(job));
}

/** @param {any} job */
async function showPartials(job) {
  if (!job.result_id || job.status === "completed") return;
  snapshots ??= new Snapshots(the("snapshots"), job.result_id, job.job_type);
  the("permalink").href = `${base}/results/${job.result_id}`;
  try {
    await snapshots.update(job.result_seq);
  } catch (error) {
    // They are kept for a shorter time than the job.
    if (error.status !== 404) throw error;
  }
  the("partials").hidden = snapshots.count === 0;
}

async function showLog() {
  await log.update();
  the("log").hidden = the("lines").childElementCount === 0;
}

/** @param {any} job */
async function show(job) {
  document.title = `${progress(job)} % · ${t(`status.${job.status}`)} · Duly`;
  showState(job);
  if (job.status === "completed") return location.replace(`${base}/results/${job.result_id}`);
  if (ended(job)) {
    the("note").textContent = "";
    the("partials-title").textContent = t("partials.final");
    the("ending").replaceChildren(ending(job, may, the("problem")));
    // Its last lines are written a moment after its end.
    setTimeout(() => showLog().catch(() => {}), LAST_LINES);
  }
  await showPartials(job);
  await showLog();
}

async function cancel() {
  const reason = the("reason").value.trim() || t("cancel.default");
  the("cancel").disabled = true;
  try {
    await call("POST", `/v1/jobs/${jobId}/cancel`, { json: { reason } });
  } catch (error) {
    // It has ended by itself: the page shows how.
    if (error.code !== "job.finished") showProblem(the("problem"), error);
  }
  the("cancel").disabled = false;
  await follower.look();
}

const follower = new Follower(jobId, JSON.parse(page.dataset.names), {
  job: show,
  note: (text) => say(the("note"), text),
  offline: (is) => (the("offline").hidden = !is),
});
the("cancel").addEventListener("click", () => {
  // Else Escape would mean what the last answer was.
  the("sure").returnValue = "no";
  the("sure").showModal();
});
the("sure").addEventListener("close", () => the("sure").returnValue === "yes" && cancel());
await follower.start();
