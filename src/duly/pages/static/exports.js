/** The exports page: the job's page links to the files. */

import "./page.js";
import { call, go } from "./api.js";
import { byId, onSubmit } from "./dom.js";

const form = byId("export-form");
const format = () => form.elements.format.value;

/** The export request: documents or search results. */
function chosen() {
  const [query, folder, type] = ["q", "folder", "doc-type"].map((id) => byId(id).value.trim());
  if (!query) return { node_id: folder || null, doc_type: type || null };
  return { query, filters: { nodes: folder ? [folder] : null, doc_types: type ? [type] : null } };
}

form?.addEventListener("change", () => (byId("for-excel").hidden = format() !== "csv"));
onSubmit(form, async () => {
  const json = { ...chosen(), format: format(), bom: format() === "csv" && byId("bom").checked };
  const answer = await call("POST", "/v1/documents/exports", { json });
  go(`/jobs/${(await answer.json()).job_id}`);
});
