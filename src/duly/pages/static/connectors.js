/** The page with accounts elsewhere: documents are brought in from there, by a job. */

import "./page.js";
import { call, go } from "./api.js";
import { byId, onSubmit } from "./dom.js";

const PATH = "/v1/documents/connectors";

for (const one of document.querySelectorAll(".connector")) {
  const path = `${PATH}/${one.dataset.connector}`;
  const start = one.querySelector("form.start");
  onSubmit(start, async () => {
    const json = { remote_path: start.elements.path.value.trim(), folders: start.elements.keep.checked ? "keep" : "flat" };
    const answer = await call("POST", `${path}/import`, { json });
    go(`/jobs/${(await answer.json()).job_id}`);
  });
  const look = one.querySelector("form.look");
  onSubmit(look, async ({ submitter }) => {
    const reason = look.elements.reason.value.trim();
    if (submitter.value === "forget") await call("DELETE", `${path}?reason=${encodeURIComponent(reason)}`);
    else await call("PATCH", path, { json: { disabled: submitter.value === "disable", reason } });
    location.reload();
  });
}
onSubmit(byId("new-connector"), async () => {
  const json = { provider: byId("provider").value, name: byId("name").value.trim(), secret_ref: byId("secret").value.trim() };
  const account = byId("account").value.trim();
  await call("POST", PATH, { json: { ...json, account: account || null, node_id: byId("into").value || null } });
  location.reload();
});
