/** The page of a folder: name, parent folder and access. */

import "./page.js";
import { call, go } from "./api.js";
import { byId, el, onSubmit, setText } from "./dom.js";
import { t } from "./i18n.js";

const page = byId("folder");
const path = `/v1/documents/folders/${page.dataset.folder}`;
const { given, write } = JSON.parse(page.dataset.grants);
const LEVELS = ["read", "write", "manage"];

/** A principal and its access level. */
function line(grant) {
  const principal = el("input", { required: true, maxlength: "300", placeholder: "user:anna", autocomplete: "off", "aria-label": t("grants.principal") });
  principal.value = grant.principal;
  principal.pattern = "(user|api_key):.+";
  principal.title = t("grants.principal.hint");
  const level = el("select", { "aria-label": t("grants.level") }, ...LEVELS.map((one) => el("option", { value: one, selected: one === grant.level }, t(`grants.${one}`))));
  const item = el("li", {}, principal, level);
  if (!write) [principal, level].forEach((field) => (field.disabled = true));
  else {
    const label = t("grants.drop", { principal: grant.principal || t("grants.unnamed") });
    item.append(el("button", { type: "button", class: "plain", "aria-label": label, click: () => item.remove() }, "×"));
  }
  return item;
}

const said = (item) => ({ principal: item.querySelector("input").value.trim(), level: item.querySelector("select").value });

byId("grants").append(...given.map(line));
byId("grants-add")?.addEventListener("click", () => {
  byId("grants").append(line({ principal: "", level: "read" }));
  byId("grants").lastElementChild.querySelector("input").focus();
});
if (write) {
  onSubmit(byId("grants-form"), async () => {
    setText(byId("grants-saved"), "");
    const grants = [...byId("grants").children].map(said);
    await call("PUT", `${path}/grants`, { json: { grants, reason: byId("grants-reason").value.trim() } });
    byId("grants-reason").value = "";
    setText(byId("grants-saved"), t("grants.saved"));
  });
}
onSubmit(byId("folder-form"), async () => {
  const [name, parent] = [byId("name"), byId("parent").value];
  const json = {};
  if (name.value.trim() !== name.defaultValue) json.name = name.value.trim();
  if (parent !== page.dataset.parent) json.parent_id = parent || null;
  if (Object.keys(json).length) await call("PATCH", path, { json });
  location.reload();
});
byId("remove")?.addEventListener("click", () => byId("sure").showModal());
byId("keep")?.addEventListener("click", () => byId("sure").close());
onSubmit(byId("remove-form"), async () => {
  await call("DELETE", `${path}?reason=${encodeURIComponent(byId("reason").value.trim())}`);
  go(`/documents?folder=${page.dataset.parent}`);
});
