/** Forms that send something, and say beside them what went wrong. */

import { showProblem } from "./api.js";
import { say } from "./dom.js";

/** @param {HTMLElement} form @param {string} text */
export const complain = (form, text) => say(form.querySelector("[role=alert]"), text);

/**
 * @param {HTMLFormElement | null} form none if they may not
 * @param {(event: SubmitEvent) => Promise<unknown>} send
 */
export function sending(form, send) {
  if (!form) return;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (form.dataset.busy) return;
    form.dataset.busy = "yes";
    complain(form, "");
    try {
      await send(event);
    } catch (error) {
      showProblem(form.querySelector("[role=alert]"), error);
    } finally {
      delete form.dataset.busy;
    }
  });
}
