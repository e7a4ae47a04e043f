/** What every page has: the way out, and times as the reader's clock shows them. */

import { forget } from "./again.js";
import { call, go, Problem } from "./api.js";
import { fullTime, zonedTime } from "./i18n.js";

async function logOut() {
  forget();
  try {
    await call("DELETE", "/session");
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
  }
  go("/login");
}

document.getElementById("logout")?.addEventListener("click", logOut);
for (const time of document.querySelectorAll("time[datetime]")) {
  time.title = zonedTime(time.dateTime);
  time.textContent = fullTime(time.dateTime);
}
