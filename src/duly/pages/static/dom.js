/** Elements, made with text only: nothing that comes from outside is ever read as HTML. */

import { remember } from "./again.js";
import { call, go, showProblem } from "./api.js";
import { t, zonedTime } from "./i18n.js";

/**
 * An element of the page, by its id.
 * @param {string} id
 * @returns {any}
 */
export const the = (id) => document.getElementById(id);

/**
 * A new element with attributes and children; texts become text nodes.
 * @param {string} tag
 * @param {Record<string, string | boolean | EventListener>} [attributes]
 * @param {...(Node | string)} children
 */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Show a text in an element, or hide it if there is none. @param {HTMLElement} place @param {string} text */
export function say(place, text) {
  if (place.textContent !== text) place.textContent = text;
  place.hidden = !text;
}

/**
 * Names and values in a list of facts.
 * @param {HTMLElement} list a `dl`
 * @param {[string, Node | string | null | undefined][]} facts those without a value are left out
 */
export function tell(list, facts) {
  const told = facts.filter(([, value]) => value !== null && value !== undefined && value !== "");
  list.replaceChildren(...told.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

/** A moment as an element. @param {string | null} at @param {(at: string) => string} format */
export const timeOf = (at, format) => (at ? el("time", { datetime: at, title: zonedTime(at) }, format(at)) : null);

const AT_FIRST = 10;

/** The cells of a row. @param {...(Node | string)} cells */
export const row = (...cells) => cells;

/**
 * @param {string[]} head no headings if it is empty
 * @param {(Node | string)[][]} rows
 * @param {{numbers?: number[], kind?: string}} [how] which columns are numbers; `list` for cards where it is narrow
 */
export function table(head, rows, { numbers = [], kind = "" } = {}) {
  const align = (n) => ({ class: numbers.includes(n) ? "number" : "" });
  const cells = (tag, texts, more = {}) => texts.map((text, n) => el(tag, { ...align(n), ...more }, text));
  const top = head.length ? [el("thead", {}, el("tr", {}, ...cells("th", head, { scope: "col" })))] : [];
  const body = el("tbody", {}, ...rows.map((one) => el("tr", {}, ...cells("td", one))));
  return el("div", { class: "scroll", tabindex: "0" }, el("table", { class: kind }, ...top, body));
}

/**
 * A name, a bar and a word about it.
 * @param {string} name
 * @param {number} part from 0 to 1
 * @param {string} said
 */
export const share = (name, part, said) =>
  el(
    "li",
    {},
    el("span", { class: "key" }, name),
    el("meter", { min: "0", max: "1", value: `${part}`, "aria-hidden": "true" }),
    el("span", { class: "said" }, said),
  );

/**
 * A list with its first items, and a button for the others.
 * @param {HTMLElement} list
 * @param {Element[]} items
 * @param {HTMLElement} [whole] what the list is part of
 */
export function folded(list, items, whole = list) {
  list.replaceChildren(...items.slice(0, AT_FIRST));
  const rest = items.slice(AT_FIRST);
  if (!rest.length) return whole;
  const more = el("button", { type: "button", class: "plain" }, t("tree.more", { n: rest.length }));
  more.addEventListener("click", () => {
    list.append(...rest);
    more.remove();
  });
  return el("div", {}, whole, more);
}

/** A table with its first rows, and a button for the others. @param {string[]} head @param {(Node | string)[][]} rows */
export function foldedTable(head, rows) {
  const whole = table(head, rows, { kind: "list" });
  const body = whole.querySelector("tbody");
  return folded(body, [...body.children], whole);
}

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

/** Have a job done, and go to its page. @param {object} request @param {string} key */
export async function ask(request, key) {
  const answer = await call("POST", "/v1/jobs", { json: request, headers: { "idempotency-key": key } });
  const { job_id: jobId } = await answer.json();
  remember(jobId, request);
  go(`/jobs/${jobId}`);
}

/**
 * A form that asks for a job.
 * @param {HTMLFormElement} form
 * @param {HTMLElement} problem where it is said what is wrong
 * @param {(report: (text: string) => void) => Promise<object | null>} read the request; null if the form is wrong
 */
export function asking(form, problem, read) {
  const doing = form.querySelector(".doing");
  const button = form.querySelector("button[type=submit]");
  const report = (text) => (doing.textContent = text);
  let key = crypto.randomUUID();
  // Another request is another job.
  const renew = () => {
    key = crypto.randomUUID();
    problem.hidden = true;
  };
  for (const event of ["input", "change"]) form.addEventListener(event, renew);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    problem.hidden = true;
    try {
      const request = await read(report);
      if (request === null) return;
      report(t("submit.sending"));
      await ask(request, key);
    } catch (error) {
      showProblem(problem, error);
    } finally {
      button.disabled = false;
      report("");
    }
  });
}

/** A place that takes files: chosen in its field, or dropped on it. */

/**
 * @param {HTMLElement} zone
 * @param {HTMLInputElement} input
 * @param {(files: FileList) => void} choose
 */
export function takingFiles(zone, input, choose) {
  input.addEventListener("change", () => {
    choose(input.files);
    input.value = "";
  });
  for (const event of ["dragover", "dragleave", "drop"]) {
    zone.addEventListener(event, (dragged) => {
      dragged.preventDefault();
      zone.classList.toggle("over", event === "dragover");
    });
  }
  zone.addEventListener("drop", (dropped) => choose(dropped.dataTransfer.files));
}
