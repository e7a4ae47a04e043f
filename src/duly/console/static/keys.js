/**
 * Keyboard shortcuts: `/` focuses the search box, `j` and `k` move between rows, `x` selects a row, `?` shows help.
 * A row is an element with `data-row`: Enter opens its first link, `x` toggles its checkbox. The search box is the
 * field with `data-search`.
 */

const help = /** @type {HTMLDialogElement} */ (document.getElementById("keys"));

/** @param {EventTarget | null} target */
const types = (target) => target instanceof HTMLElement && (target.matches("input:not([type=checkbox]), textarea, select") || target.isContentEditable);
const rows = () => [...document.querySelectorAll("[data-row]")];
const focusOf = (row) => row?.querySelector("a[href]");

/** @param {number} step */
function move(step) {
  const all = rows();
  if (!all.length) return;
  const here = all.findIndex((row) => row.contains(document.activeElement));
  const there = here < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(here + step, 0), all.length - 1);
  focusOf(all[there])?.focus();
  all[there].scrollIntoView({ block: "nearest" });
}

function select() {
  const row = rows().find((one) => one.contains(document.activeElement));
  row?.querySelector("input[type=checkbox]")?.click();
}

function search() {
  const box = document.querySelector("[data-search]");
  box?.focus();
  box?.select();
}

const KEYS = { "/": search, j: () => move(1), k: () => move(-1), x: select, "?": () => help.showModal() };

/** Enable the shortcuts of this page. */
export function beginKeys() {
  const button = document.getElementById("show-keys");
  if (button) button.hidden = false;
  button?.addEventListener("click", () => help.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || types(event.target) || help.open) return;
    const act = KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
