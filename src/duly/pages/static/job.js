/** The page of a job: progress, partial results, log and outcome. */

import "./page.js";
import { recallRequest } from "./request_memory.js";
import { base, call, go, showProblem } from "./api.js";
import { byId, el, renderFacts, setText, submitJob, timeOf } from "./dom.js";
import { ended, Follower } from "./follow.js";
import { number, progress, t, time } from "./i18n.js";
import { Snapshots } from "./values.js";

/** Advice on a failure. @param {any} job */
function advice(job) {
  if (job.outcome === "blocked") return t("failure.blocked");
  if (job.reconciled) return t("failure.reconciled");
  const passing = t(job.retryable ? "failure.retryable" : "failure.final");
  return job.outcome === "dead" ? `${t("failure.dead")} ${job.retryable ? passing : ""}`.trim() : passing;
}

/** Rerun the job with its stored payload. @param {any} job */
async function rerun(job) {
  const answer = await call("POST", `/v1/jobs/${job.job_id}/rerun`, { json: { reason: t("rerun.reason") } });
  go(`/jobs/${(await answer.json()).job_id}`);
}

/** The action that reruns a job: operators rerun any, others submit the request that this tab remembers. */
function rerunAction(job, may) {
  if (may.operate) return () => rerun(job);
  const request = recallRequest(job.job_id);
  const key = crypto.randomUUID();
  return request && (() => submitJob(request, key));
}

/** A button that reruns the job if that can help, else a link to a new job. @param {any} job */
function again(job, may, problem) {
  const worthwhile = job.status === "canceled" || job.retryable || job.reconciled;
  const way = worthwhile && rerunAction(job, may);
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
  renderFacts(facts, [
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
 * @param {HTMLElement} problem shows errors
 */
export function outcomeNotice(job, may, problem) {
  const content = job.status === "failed" ? failure(job) : canceled(job);
  const kind = job.status === "failed" ? "bad" : "calm";
  const way = may.write || may.operate ? [el("p", {}, again(job, may, problem))] : [];
  return el("section", { class: `notice ${kind}`, id: "ended" }, ...content, ...way);
}

const LINES_PER_REQUEST = 500;
const MAX_LINES = 300;

/** The log lines, read page by page. */
export class Log {
  /** @param {HTMLElement} list @param {string} jobId */
  constructor(list, jobId) {
    this.list = list;
    this.path = `/v1/jobs/${jobId}/logs?limit=${LINES_PER_REQUEST}`;
    this.after = "";
    this.reading = null;
  }

  /** Read to the end; concurrent calls share one reading. */
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
      if (page.lines.length < LINES_PER_REQUEST) return;
    }
  }

  add(line) {
    const when = timeOf(line.logged_at, time);
    const attempt = line.attempt > 1 ? ` ${t("log.attempt", { n: line.attempt })}` : "";
    const said = el("span", { class: "said" }, line.message);
    this.list.append(el("li", { "data-level": line.level }, when, `${attempt} ${line.level} `, said));
    if (this.list.childElementCount > MAX_LINES) this.list.firstElementChild.remove();
  }
}

const page = byId("job");
const jobId = page.dataset.job;
const may = JSON.parse(page.dataset.may);
const LAST_LINES_DELAY = 1500;
const log = new Log(byId("lines"), jobId);
/** @type {Snapshots | null} */
let snapshots = null;

/** The message about the status. @param {any} job */
function statusMessage(job) {
  if (job.cancel_requested_at && !ended(job)) return t("job_message.stopping");
  const later = Date.parse(job.run_at) > Date.now() + 1000;
  if (job.status !== "queued" || !(later || job.error_code)) return t(`job_message.${job.status}`);
  if (!later) return t("job_message.retried");
  const how = job.error_code ? "retrying" : job.attempt ? "resumes" : "scheduled";
  return t(`job_message.${how}`, { time: time(job.run_at) });
}

/** The error of the last attempt while the job is retried. @param {any} job */
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
  byId("status").textContent = t(`status.${job.status}`);
  byId("status").dataset.status = job.status;
  if (byId("says").textContent !== statusMessage(job)) byId("says").textContent = statusMessage(job);
  byId("progress").value = job.progress_percent;
  byId("progress").dataset.status = job.status;
  byId("percent").textContent = `${progress(job)} %`;
  setText(byId("last-failure"), lastFailure(job));
  setText(byId("stale"), stale ? t("job.stale", { time: time(job.updated_at) }) : "");
  byId("stay").hidden = !active;
  byId("cancel").hidden = !active || !may.write || Boolean(job.cancel_requested_at);
  renderFacts(byId("facts"), facts(job));
}

/** @param {any} job */
async function showPartials(job) {
  if (!job.result_id || job.status === "completed") return;
  snapshots ??= new Snapshots(byId("snapshots"), job.result_id, job.job_type);
  byId("permalink").href = `${base}/results/${job.result_id}`;
  try {
    await snapshots.update(job.result_seq);
  } catch (error) {
    // Snapshots expire before the job.
    if (error.status !== 404) throw error;
  }
  byId("partials").hidden = snapshots.count === 0;
}

async function showLog() {
  await log.update();
  byId("log").hidden = byId("lines").childElementCount === 0;
}

/** @param {any} job */
async function show(job) {
  document.title = `${progress(job)} % · ${t(`status.${job.status}`)} · Duly`;
  showState(job);
  if (job.status === "completed") return location.replace(`${base}/results/${job.result_id}`);
  if (ended(job)) {
    byId("note").textContent = "";
    byId("partials-title").textContent = t("partials.final");
    byId("ending").replaceChildren(outcomeNotice(job, may, byId("problem")));
    // The last lines are written shortly after the end.
    setTimeout(() => showLog().catch(() => {}), LAST_LINES_DELAY);
  }
  await showPartials(job);
  await showLog();
}

async function cancel() {
  const reason = byId("reason").value.trim() || t("cancel.default");
  byId("cancel").disabled = true;
  try {
    await call("POST", `/v1/jobs/${jobId}/cancel`, { json: { reason } });
  } catch (error) {
    // The job has finished meanwhile: the page shows it.
    if (error.code !== "job.finished") showProblem(byId("problem"), error);
  }
  byId("cancel").disabled = false;
  await follower.refresh();
}

const follower = new Follower(jobId, JSON.parse(page.dataset.names), {
  job: show,
  note: (text) => setText(byId("note"), text),
  offline: (is) => (byId("offline").hidden = !is),
});
byId("cancel").addEventListener("click", () => {
  // Escape keeps the last return value: reset it.
  byId("sure").returnValue = "no";
  byId("sure").showModal();
});
byId("sure").addEventListener("close", () => byId("sure").returnValue === "yes" && cancel());
await follower.start();
