/** How a job ended without a result: why, whether it helps to try again, and the way to do so. */

import { ask } from "./ask.js";
import { recall } from "./again.js";
import { base, call, go, showProblem } from "./api.js";
import { el, tell } from "./dom.js";
import { t } from "./words.js";

/** What to make of a failure. @param {any} job */
function advice(job) {
  if (job.outcome === "blocked") return t("failed.blocked");
  if (job.reconciled) return t("failed.reconciled");
  const passing = t(job.retryable ? "failed.retryable" : "failed.final");
  return job.outcome === "dead" ? `${t("failed.dead")} ${job.retryable ? passing : ""}`.trim() : passing;
}

/** Have the service do it again: it has kept what was asked for. @param {any} job */
async function rerun(job) {
  const answer = await call("POST", `/v1/jobs/${job.job_id}/rerun`, { json: { reason: t("again.reason") } });
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
  if (!way) return may.write ? el("a", { class: "button", href: `${base}/submit` }, t("again.new")) : "";
  const button = el("button", { type: "button", class: "main" }, t(job.status === "canceled" ? "again.new" : "again.button"));
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
    [t("failed.class"), [job.error_class, job.error_code].filter(Boolean).join(" · ")],
    [t("failed.message"), job.error_message],
  ]);
  return [facts, el("p", {}, advice(job))];
}

/** @param {any} job */
function canceled(job) {
  const why = job.cancel_reason ? [el("p", {}, t("canceled.why", { reason: job.cancel_reason }))] : [];
  return [...why, el("p", {}, t("canceled.anew"))];
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
