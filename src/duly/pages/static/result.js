/** The permanent page of a result. */

import "./page.js";
import { base, get, showProblem } from "./api.js";
import { byId, el, renderFacts, setText, timeOf } from "./dom.js";
import { ended } from "./follow.js";
import { bytes, fullTime, t } from "./i18n.js";
import { Snapshots, whole } from "./values.js";

const resultId = byId("result").dataset.result;

/** The notice above an incomplete result. @param {any} result */
function notice(result) {
  if (["failed", "canceled"].includes(result.status)) return t(`result.${result.status}`);
  if (result.outcome === "partially_succeeded") return t("result.incomplete");
  if (result.status !== "completed") return t(result.snapshot ? "result.running" : "result.none");
  return "";
}

/** @param {any} result */
function showHead(result) {
  const kind = result.snapshot?.kind ?? "partial";
  byId("kind").textContent = t(`result.${kind}`);
  byId("kind").dataset.kind = kind;
  if (kind !== "final") {
    byId("status").hidden = false;
    byId("status").dataset.status = result.status;
    byId("status").textContent = t(`status.${result.status}`);
  }
  setText(byId("notice"), notice(result));
  renderFacts(byId("facts"), [
    [t("job.subject"), result.subject_id],
    [t("result.created"), timeOf(result.snapshot?.created_at ?? null, fullTime)],
    [t("result.expires"), timeOf(result.expires_at, fullTime)],
  ]);
  byId("to-job").href = `${base}/jobs/${result.job_id}`;
  byId("to-job").hidden = result.status === "completed";
}

/** @param {any} result */
async function showFiles(result) {
  const { artifacts } = await get(`/v1/jobs/${result.job_id}/artifacts`);
  const links = artifacts.map((file) => {
    // Only the path: the page may use another name of the same host.
    const { pathname } = new URL(file.url, location.href);
    return el("li", {}, el("a", { href: pathname, download: file.name }, file.name), " ", el("small", {}, bytes(file.size)));
  });
  byId("file-list").replaceChildren(...links);
  byId("files").hidden = links.length === 0;
}

/** @param {any} result */
async function showValue(result) {
  if (result.snapshot?.kind === "final") {
    byId("value").replaceChildren(whole(result.job_type, result.snapshot.value));
    return;
  }
  if (!ended(result)) byId("partials-title").textContent = t("partials.title");
  const snapshots = new Snapshots(byId("snapshots"), resultId, result.job_type);
  await snapshots.update(result.latest_seq);
  byId("partials").hidden = snapshots.count === 0;
}

try {
  const result = await get(`/v1/results/${resultId}`);
  showHead(result);
  await Promise.all([showValue(result), showFiles(result)]);
} catch (error) {
  showProblem(byId("problem"), error);
}
