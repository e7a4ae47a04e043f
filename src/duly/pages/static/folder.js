/** The page of a folder: its name and place, and whom it is for. */

import "./page.js";
import { call, go } from "./api.js";
import { el, say, sending, the } from "./dom.js";
import { t } from "./i18n.js";

const page = the("folder");
const path = `/v1/documents/folders/${page.dataset.folder}`;
const { given, write } = JSON.parse(page.dataset.grants);
const LEVELS = ["read", "write", "manage"];

/** Somebody, and what they may. */
function line(grant) {
  const who = el("input", { required: true, maxlength: "300", placeholder: "user:anna", autocomplete: "off", "aria-label": t("grants.principal") });
  who.value = grant.principal;
  who.pattern = "(user|api_key):.+";
  who.title = t("grants.principal.hint");
  const level = el("select", { "aria-label": t("grants.level") }, ...LEVELS.map((one) => el("option", { value: one, selected: one === grant.level }, t(`grants.${one}`))));
  const item = el("li", {}, who, level);
  if (!write) [who, level].forEach((field) => (field.disabled = true));
  else {
    const label = t("grants.drop", { principal: grant.principal || t("grants.unnamed") });
    item.append(el("button", { type: "button", class: "plain", "aria-label": label, click: () => item.remove() }, "×"));
  }
  return item;
}

const said = (item) => ({ principal: item.querySelector("input").value.trim(), level: item.querySelector("select").value });

the("grants").append(...given.map(line));
the("grants-add")?.addEventListener("click", () => {
  the("grants").append(line({ principal: "", level: "read" }));
  the("grants").lastElementChild.querySelector("input").focus();
});
if (write) {
  sending(the("grants-form"), async () => {
    say(the("grants-saved"), "");
    const grants = [...the("grants").children].map(said);
    await call("PUT", `${path}/grants`, { json: { grants, reason: the("grants-reason").value.trim() } });
    the("grants-reason").value = "";
    say(the("grants-saved"), t("grants.saved"));
  });
}
sending(the("folder-form"), async () => {
  const [name, parent] = [the("name"), the("parent").value];
  const json = {};
  if (name.value.trim() !== name.defaultValue) json.name = name.value.trim();
  if (parent !== page.dataset.parent) json.parent_id = parent || null;
  if (Object.keys(json).length) await call("PATCH", path, { json });
  location.reload();
});
the("remove")?.addEventListener("click", () => the("sure").showModal());
the("keep")?.addEventListener("click", () => the("sure").close());
sending(the("remove-form"), async () => {
  await call("DELETE", `${path}?reason=${encodeURIComponent(the("reason").value.trim())}`);
  go(`/documents?folder=${page.dataset.parent}`);
});
