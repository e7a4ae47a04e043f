/** The page that says where documents of each type belong. */

import "./page.js";
import { call, showProblem } from "./api.js";
import { complain, sending, the } from "./dom.js";
import { t } from "./i18n.js";

/** @param {string} type @param {string | null} folder */
async function set(type, folder) {
  await call("PUT", "/v1/documents/filing", { json: { doc_type: type, node_id: folder } });
  location.reload();
}

sending(the("filing-form"), async () => {
  const type = the("own").value.trim() || the("type").value;
  if (!type) return complain(the("filing-form"), t("filing.choose"));
  await set(type, the("folder").value);
});
the("rules")?.addEventListener("click", async ({ target }) => {
  if (!target.dataset.type) return;
  try {
    await set(target.dataset.type, null);
  } catch (error) {
    showProblem(the("filing-form").querySelector("[role=alert]"), error);
  }
});
