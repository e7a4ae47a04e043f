/**
 * Live updates: the server sends the page when it has changed, and the differences are applied.
 * A hidden page has no connection: browsers limit their number.
 */

import { morph } from "./morph.js";

const content = document.getElementById("live");
const pulse = document.getElementById("pulse");
const DISCONNECT_DELAY = 2000;
/** @type {EventSource | null} */
let source = null;
let disconnectTimer = 0;

/** @param {"live" | "away"} state */
function showState(state) {
  if (!pulse || pulse.dataset.state === state) return;
  pulse.dataset.state = state;
  const label = /** @type {HTMLElement} */ (pulse.firstElementChild);
  label.textContent = pulse.dataset[state] ?? "";
  label.classList.toggle("unseen", state === "live");
}

/** @param {MessageEvent} event */
function update(event) {
  const fresh = new DOMParser().parseFromString(JSON.parse(event.data), "text/html");
  morph(content, fresh.body);
  document.dispatchEvent(new CustomEvent("duly:changed"));
}

function begin() {
  if (source || document.hidden) return;
  const address = location.pathname + location.search;
  source = new EventSource(address);
  source.onopen = () => {
    clearTimeout(disconnectTimer);
    disconnectTimer = 0;
    showState("live");
  };
  source.addEventListener("page", update);
  source.onerror = () => {
    disconnectTimer ||= setTimeout(() => showState("away"), DISCONNECT_DELAY);
    // A rejected stream is not retried: a reload shows the reason.
    if (source?.readyState === EventSource.CLOSED) end();
  };
}

function end() {
  source?.close();
  source = null;
}

/** Follow the page if it is live. */
export function follow() {
  if (!content?.hasAttribute("data-live")) return;
  document.addEventListener("visibilitychange", () => (document.hidden ? end() : begin()));
  addEventListener("pagehide", end);
  begin();
}
