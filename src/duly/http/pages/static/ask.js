/** Asking for a job: one key for one request, so that two clicks, or a second try, are one job. */

import { call, go, showProblem } from "./api.js";
import { remember } from "./again.js";
import { t } from "./words.js";

/** Have a job done, and go to its page. @param {object} request @param {string} key */
export async function ask(request, key) {
  const answer = await call("POST", "/v1/jobs", { json: request, headers: { "idempotency-key": key } });
  const { job_id: jobId } = await answer.json();
  remember(jobId, request);
  go(`/jobs/${jobId}`);
}

/**
 * A form that asks for a job.
 * @param {HTMLFormElement} form
 * @param {HTMLElement} problem where it is said what is wrong
 * @param {(report: (text: string) => void) => Promise<object | null>} read the request; null if the form is wrong
 */
export function asking(form, problem, read) {
  const doing = form.querySelector(".doing");
  const button = form.querySelector("button[type=submit]");
  const report = (text) => (doing.textContent = text);
  let key = crypto.randomUUID();
  // Another request is another job.
  const renew = () => {
    key = crypto.randomUUID();
    problem.hidden = true;
  };
  for (const event of ["input", "change"]) form.addEventListener(event, renew);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    problem.hidden = true;
    try {
      const request = await read(report);
      if (request === null) return;
      report(t("submit.sending"));
      await ask(request, key);
    } catch (error) {
      showProblem(problem, error);
    } finally {
      button.disabled = false;
      report("");
    }
  });
}
