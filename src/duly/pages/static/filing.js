/** The page that says where documents of each type belong. */

import "./page.js";
import { call, showProblem } from "./api.js";
import { byId, onSubmit, showFormError } from "./dom.js";
import { t } from "./i18n.js";

/** @param {string} type @param {string | null} folder */
async function set(type, folder) {
  await call("PUT", "/v1/documents/filing", { json: { doc_type: type, node_id: folder } });
  location.reload();
}

onSubmit(byId("filing-form"), async () => {
  const type = byId("own").value.trim() || byId("type").value;
  if (!type) return showFormError(byId("filing-form"), t("filing.choose"));
  await set(type, byId("folder").value);
});
byId("rules")?.addEventListener("click", async ({ target }) => {
  if (!target.dataset.type) return;
  try {
    await set(target.dataset.type, null);
  } catch (error) {
    showProblem(byId("filing-form").querySelector("[role=alert]"), error);
  }
});
