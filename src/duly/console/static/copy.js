/** Buttons with `data-copy` copy the text of the element with that id. */

const CONFIRMATION_TIME = 1500;

/** @param {HTMLElement} button */
async function copy(button) {
  const text = document.getElementById(button.dataset.copy ?? "")?.textContent ?? "";
  await navigator.clipboard.writeText(text);
  const before = button.textContent;
  button.textContent = button.dataset.done ?? before;
  setTimeout(() => (button.textContent = before), CONFIRMATION_TIME);
}

function show() {
  for (const button of document.querySelectorAll("[data-copy][hidden]")) button.removeAttribute("hidden");
}

/** Enable the buttons where the browser allows copying. */
export function beginCopying() {
  if (!navigator.clipboard) return;
  show();
  document.addEventListener("duly:changed", show);
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest("[data-copy]");
    if (button) copy(/** @type {HTMLElement} */ (button));
  });
}
