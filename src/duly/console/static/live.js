/**
 * The page stays true: the server sends it again when it has changed, and what differs is changed here.
 * Nobody looks at a hidden page, so it holds no connection: browsers have few of them.
 */

import { morph } from "./morph.js";

const place = document.getElementById("live");
const pulse = document.getElementById("pulse");
const PATIENCE = 2000;
/** @type {EventSource | null} */
let source = null;
let trouble = 0;

/** @param {"live" | "away"} state */
function tell(state) {
  if (!pulse || pulse.dataset.state === state) return;
  pulse.dataset.state = state;
  const said = /** @type {HTMLElement} */ (pulse.firstElementChild);
  said.textContent = pulse.dataset[state] ?? "";
  said.classList.toggle("unseen", state === "live");
}

/** @param {MessageEvent} event */
function changed(event) {
  const fresh = new DOMParser().parseFromString(JSON.parse(event.data), "text/html");
  morph(place, fresh.body);
  document.dispatchEvent(new CustomEvent("duly:changed"));
}

function begin() {
  if (source || document.hidden) return;
  const address = location.pathname + location.search;
  source = new EventSource(address);
  source.onopen = () => {
    clearTimeout(trouble);
    trouble = 0;
    tell("live");
  };
  source.addEventListener("page", changed);
  source.onerror = () => {
    trouble ||= setTimeout(() => tell("away"), PATIENCE);
    // A refusal ends it for good: the page itself says why when it is loaded again.
    if (source?.readyState === EventSource.CLOSED) end();
  };
}

function end() {
  source?.close();
  source = null;
}

/** Follow this page, if it is one that changes. */
export function follow() {
  if (!place?.hasAttribute("data-live")) return;
  document.addEventListener("visibilitychange", () => (document.hidden ? end() : begin()));
  addEventListener("pagehide", end);
  begin();
}
