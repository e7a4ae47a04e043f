/** Having a document read again: by which engine, and who agrees that it leaves the house. */

import { call, showProblem } from "./api.js";
import { say, the } from "./dom.js";
import { number, t } from "./words.js";

/** What it would cost. @param {number} cents a page @param {number | null} pages */
function estimate(cents, pages) {
  if (pages === null) return t("reading.price", { cents: number(cents) });
  // As the service counts: whole cents, rounded up.
  const cost = Math.ceil(Number((pages * cents).toFixed(6)));
  return t("reading.estimate", { cents: number(cost), pages: number(pages) });
}

/** Ask for it. @param {string} path of the document @param {object} json @param {HTMLElement} problem */
async function ask(path, json, problem, reload) {
  try {
    await call("POST", `${path}/extractions`, { json });
    the("again").open = false;
    the("read").reset();
    the("elsewhere").hidden = true;
    await reload();
  } catch (error) {
    showProblem(problem, error);
  }
}

/**
 * Let people have it read.
 * @param {string} path of the document
 * @param {() => any} current the document as it is known
 * @param {() => Promise<void>} reload
 */
export function readingAgain(path, current, reload) {
  const form = the("read");
  if (!form) return;
  const cents = JSON.parse(form.dataset.cents);
  const engine = () => form.elements.engine.value;
  form.addEventListener("change", () => {
    const price = cents[engine()];
    the("elsewhere").hidden = price === undefined;
    the("estimate").textContent = price === undefined ? "" : estimate(price, current().page_count);
    say(the("read-problem"), "");
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const [goes, consent] = [engine() in cents, the("consent").checked];
    if (!goes || consent) return ask(path, { engine: engine(), consent: goes && consent }, the("read-problem"), reload);
    say(the("read-problem"), t("reading.no_consent"));
    the("consent").focus();
  });
  the("recognize").addEventListener("click", () => ask(path, { engine: "hires" }, the("problem"), reload));
}
