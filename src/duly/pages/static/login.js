/** Sign in with the pasted key, or with the key in the URL fragment, which browsers do not send. */

import "./page.js";
import { call, get, go, isSignedIn, Problem } from "./api.js";
import { byId, setText } from "./dom.js";
import { t } from "./i18n.js";

const form = byId("login");
const field = byId("credential");

/** @param {Problem} problem */
function problemText(problem) {
  if (problem.status === 401) return t("login.unknown");
  return problem.status === 429 ? t("login.wait") : problem.message;
}

/** @param {string} credential */
async function signIn(credential) {
  setText(byId("problem"), "");
  byId("doing").textContent = t("login.busy");
  try {
    await call("POST", "/session", { json: { credential } });
    go(form.dataset.next);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    byId("doing").textContent = "";
    setText(byId("problem"), problemText(error));
    field.focus();
  }
}

/** Take the key of the fragment. Such a link can be forged, with a foreign key: signing in needs a click. */
function take() {
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  if (!key) return;
  history.replaceState(null, "", location.pathname + location.search);
  field.value = key;
  byId("brought").hidden = false;
  byId("log-in").focus();
}

/** The warning of an existing session that the sign-in replaces. */
async function already() {
  try {
    const { name } = await get("/v1/org");
    return t("login.already.org", { org: name });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return error.status === 401 ? "" : t("login.already");
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const credential = field.value.trim();
  if (credential) signIn(credential);
});
field.addEventListener("input", () => (byId("brought").hidden = true));
addEventListener("hashchange", take);
take();
if (isSignedIn) {
  const message = await already();
  setText(byId("already"), message && `${message} ${t("login.change")}`);
}
