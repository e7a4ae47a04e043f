/** API calls. */

import { exactly } from "./analysis.js";
import { t, textOr } from "./i18n.js";

const meta = (name) => document.querySelector(`meta[name="duly-${name}"]`)?.content ?? "";

/** The path prefix of the service. */
export const base = meta("base");

/** Whether the browser has a session cookie; the session may have expired. */
export const isSignedIn = Boolean(meta("csrf"));

/** A rejected request (RFC 9457), with a translated message if there is one; status 0 if the service is unreachable. */
export class Problem extends Error {
  /** @param {number} status @param {{code?: string, detail?: string, errors?: {field: string}[]}} problem */
  constructor(status, problem) {
    super(textOr(`problem.${problem.code}`, problem.detail ?? `${status}`));
    this.status = status;
    this.code = problem.code ?? "";
    this.field = problem.errors?.[0]?.field ?? "";
  }
}

/**
 * Send a request.
 * @param {string} method
 * @param {string} path as in `/v1/jobs`
 * @param {{json?: unknown, body?: BodyInit, headers?: Record<string, string>, signal?: AbortSignal}} [more]
 * @returns {Promise<Response>} 2xx or 304; everything else is thrown as a problem
 */
export async function call(method, path, { json, body, headers = {}, signal } = {}) {
  const sent = { accept: "application/json", ...headers };
  if (json !== undefined) sent["content-type"] = "application/json";
  if (method !== "GET") sent["x-csrf-token"] = meta("csrf");
  let answer;
  try {
    const content = json === undefined ? body : JSON.stringify(json);
    answer = await fetch(base + path, { method, headers: sent, body: content, signal, credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: t("error.offline") });
  }
  if (answer.ok || answer.status === 304) return answer;
  throw new Problem(answer.status, await answer.json().catch(() => ({})));
}

/** The JSON of a path; numbers keep their spelling. @param {string} path */
export async function get(path) {
  return exactly(await (await call("GET", path)).text());
}

/** Go to a page of the service. @param {string} path */
export const go = (path) => location.assign(base + path);

/** Go to the sign-in page, and return to this page afterwards. */
export function signInAgain() {
  const here = location.pathname.slice(base.length) + location.search;
  location.replace(`${base}/login?next=${encodeURIComponent(here)}`);
}

/**
 * Show the error; an expired session leads to the sign-in page.
 * @param {HTMLElement} element
 * @param {unknown} error
 */
export function showProblem(element, error) {
  if (!(error instanceof Problem)) throw error;
  if (error.status === 401) return signInAgain();
  element.textContent = error.message;
  element.hidden = false;
}
