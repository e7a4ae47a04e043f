/** Logging in: with what was pasted, or with the key behind the # of the address, which is not sent to anybody. */

import "./page.js";
import { call, get, go, loggedIn, Problem } from "./api.js";
import { say, the } from "./dom.js";
import { t } from "./i18n.js";

const form = the("login");
const field = the("credential");

/** @param {Problem} problem */
function inWords(problem) {
  if (problem.status === 401) return t("login.unknown");
  return problem.status === 429 ? t("login.wait") : problem.message;
}

/** @param {string} credential */
async function logIn(credential) {
  say(the("problem"), "");
  the("doing").textContent = t("login.busy");
  try {
    await call("POST", "/session", { json: { credential } });
    go(form.dataset.next);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    the("doing").textContent = "";
    say(the("problem"), inWords(error));
    field.focus();
  }
}

/** Take the key of a link. Anybody can make such a link, with a key of their own: logging in needs a click. */
function take() {
  const given = new URLSearchParams(location.hash.slice(1)).get("key");
  if (!given) return;
  history.replaceState(null, "", location.pathname + location.search);
  field.value = given;
  the("brought").hidden = false;
  the("log-in").focus();
}

/** Who is logged in should know before they become somebody else. */
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
  if (credential) logIn(credential);
});
field.addEventListener("input", () => (the("brought").hidden = true));
addEventListener("hashchange", take);
take();
if (loggedIn) {
  const said = await already();
  say(the("already"), said && `${said} ${t("login.change")}`);
}
