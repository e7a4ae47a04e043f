/** On every page: sign-out, and times in the local zone. */

import { forgetRequests } from "./request_memory.js";
import { call, go, Problem } from "./api.js";
import { fullTime, zonedTime } from "./i18n.js";

async function signOut() {
  forgetRequests();
  try {
    await call("DELETE", "/session");
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
  }
  go("/login");
}

document.getElementById("logout")?.addEventListener("click", signOut);
for (const time of document.querySelectorAll("time[datetime]")) {
  time.title = zonedTime(time.dateTime);
  time.textContent = fullTime(time.dateTime);
}
