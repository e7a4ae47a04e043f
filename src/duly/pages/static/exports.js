/** The page on which documents are given out: the job's page has the files. */

import "./page.js";
import { call, go } from "./api.js";
import { sending, the } from "./dom.js";

const form = the("export-form");
const format = () => form.elements.format.value;

/** What is asked for: documents, or what a search finds. */
function chosen() {
  const [query, folder, type] = ["q", "folder", "doc-type"].map((id) => the(id).value.trim());
  if (!query) return { node_id: folder || null, doc_type: type || null };
  return { query, filters: { nodes: folder ? [folder] : null, doc_types: type ? [type] : null } };
}

form?.addEventListener("change", () => (the("for-excel").hidden = format() !== "csv"));
sending(form, async () => {
  const json = { ...chosen(), format: format(), bom: format() === "csv" && the("bom").checked };
  const answer = await call("POST", "/v1/documents/exports", { json });
  go(`/jobs/${(await answer.json()).job_id}`);
});
