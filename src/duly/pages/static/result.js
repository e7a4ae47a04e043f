/** The permanent page of a result. */

import "./page.js";
import { base, get, showProblem } from "./api.js";
import { el, say, tell, the, timeOf } from "./dom.js";
import { ended } from "./follow.js";
import { bytes, fullTime, t } from "./i18n.js";
import { Snapshots, whole } from "./values.js";

const resultId = the("result").dataset.result;

/** What is to be known before reading it. @param {any} result */
function notice(result) {
  if (["failed", "canceled"].includes(result.status)) return t(`result.${result.status}`);
  if (result.outcome === "partially_succeeded") return t("result.incomplete");
  if (result.status !== "completed") return t(result.snapshot ? "result.running" : "result.none");
  return "";
}

/** @param {any} result */
function showHead(result) {
  const kind = result.snapshot?.kind ?? "partial";
  the("kind").textContent = t(`result.${kind}`);
  the("kind").dataset.kind = kind;
  if (kind !== "final") {
    the("status").hidden = false;
    the("status").dataset.status = result.status;
    the("status").textContent = t(`status.${result.status}`);
  }
  say(the("notice"), notice(result));
  tell(the("facts"), [
    [t("job.subject"), result.subject_id],
    [t("result.created"), timeOf(result.snapshot?.created_at ?? null, fullTime)],
    [t("result.expires"), timeOf(result.expires_at, fullTime)],
  ]);
  the("to-job").href = `${base}/jobs/${result.job_id}`;
  the("to-job").hidden = result.status === "completed";
}

/** @param {any} result */
async function showFiles(result) {
  const { artifacts } = await get(`/v1/jobs/${result.job_id}/artifacts`);
  const links = artifacts.map((file) => {
    // By its path: the page may have come from another name of the same host.
    const { pathname } = new URL(file.url, location.href);
    return el("li", {}, el("a", { href: pathname, download: file.name }, file.name), " ", el("small", {}, bytes(file.size)));
  });
  the("file-list").replaceChildren(...links);
  the("files").hidden = links.length === 0;
}

/** @param {any} result */
async function showValue(result) {
  if (result.snapshot?.kind === "final") {
    the("value").replaceChildren(whole(result.job_type, result.snapshot.value));
    return;
  }
  if (!ended(result)) the("partials-title").textContent = t("partials.title");
  const snapshots = new Snapshots(the("snapshots"), resultId, result.job_type);
  await snapshots.update(result.latest_seq);
  the("partials").hidden = snapshots.count === 0;
}

try {
  const result = await get(`/v1/results/${resultId}`);
  showHead(result);
  await Promise.all([showValue(result), showFiles(result)]);
} catch (error) {
  showProblem(the("problem"), error);
}
