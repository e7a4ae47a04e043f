/** DOM helpers: elements are created from text only, never from HTML. */

import { rememberRequest } from "./request_memory.js";
import { call, go, showProblem } from "./api.js";
import { t, zonedTime } from "./i18n.js";

/**
 * An element of the page, by its id.
 * @param {string} id
 * @returns {any}
 */
export const byId = (id) => document.getElementById(id);

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

/** Show a text in an element; an empty text hides it. @param {HTMLElement} element @param {string} text */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
  element.hidden = !text;
}

/**
 * Render names and values.
 * @param {HTMLElement} list a `dl`
 * @param {[string, Node | string | null | undefined][]} facts empty values are left out
 */
export function renderFacts(list, facts) {
  const present = facts.filter(([, value]) => value !== null && value !== undefined && value !== "");
  list.replaceChildren(...present.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

/** A moment as an element. @param {string | null} at @param {(at: string) => string} format */
export const timeOf = (at, format) => (at ? el("time", { datetime: at, title: zonedTime(at) }, format(at)) : null);

const PAGE_SIZE = 10;

/** The cells of a row. @param {...(Node | string)} cells */
export const row = (...cells) => cells;

/**
 * @param {string[]} head no headings if it is empty
 * @param {(Node | string)[][]} rows
 * @param {{numbers?: number[], kind?: string}} [how] numeric columns; kind `list` becomes cards on narrow screens
 */
export function table(head, rows, { numbers = [], kind = "" } = {}) {
  const align = (n) => ({ class: numbers.includes(n) ? "number" : "" });
  const cells = (tag, texts, more = {}) => texts.map((text, n) => el(tag, { ...align(n), ...more }, text));
  const top = head.length ? [el("thead", {}, el("tr", {}, ...cells("th", head, { scope: "col" })))] : [];
  const body = el("tbody", {}, ...rows.map((one) => el("tr", {}, ...cells("td", one))));
  return el("div", { class: "scroll", tabindex: "0" }, el("table", { class: kind }, ...top, body));
}

/**
 * A name, a bar and a label.
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
 * @param {HTMLElement} [whole] the element that contains the list
 */
export function folded(list, items, whole = list) {
  list.replaceChildren(...items.slice(0, PAGE_SIZE));
  const rest = items.slice(PAGE_SIZE);
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
export const showFormError = (form, text) => setText(form.querySelector("[role=alert]"), text);

/**
 * @param {HTMLFormElement | null} form null without permission
 * @param {(event: SubmitEvent) => Promise<unknown>} send
 */
export function onSubmit(form, send) {
  if (!form) return;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (form.dataset.busy) return;
    form.dataset.busy = "yes";
    showFormError(form, "");
    try {
      await send(event);
    } catch (error) {
      showProblem(form.querySelector("[role=alert]"), error);
    } finally {
      delete form.dataset.busy;
    }
  });
}

/** Submit a job, and go to its page. @param {object} request @param {string} key */
export async function submitJob(request, key) {
  const answer = await call("POST", "/v1/jobs", { json: request, headers: { "idempotency-key": key } });
  const { job_id: jobId } = await answer.json();
  rememberRequest(jobId, request);
  go(`/jobs/${jobId}`);
}

/**
 * A form that submits a job.
 * @param {HTMLFormElement} form
 * @param {HTMLElement} problem shows errors
 * @param {(report: (text: string) => void) => Promise<object | null>} read the request; null if the form is invalid
 */
export function submitForm(form, problem, read) {
  const doing = form.querySelector(".doing");
  const button = form.querySelector("button[type=submit]");
  const report = (text) => (doing.textContent = text);
  let key = crypto.randomUUID();
  // A changed request is a new job, with a new idempotency key.
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
      await submitJob(request, key);
    } catch (error) {
      showProblem(problem, error);
    } finally {
      button.disabled = false;
      report("");
    }
  });
}

/**
 * A zone that accepts files: selected in its input, or dropped.
 * @param {HTMLElement} zone
 * @param {HTMLInputElement} input
 * @param {(files: FileList) => void} choose
 */
export function acceptFiles(zone, input, choose) {
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
