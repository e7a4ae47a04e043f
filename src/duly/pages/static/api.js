/** Calls to the service that this page came from. */

import { exactly } from "./analysis.js";
import { t, tOr } from "./i18n.js";

const meta = (name) => document.querySelector(`meta[name="duly-${name}"]`)?.content ?? "";

/** What comes before our paths, where the service is mounted. */
export const base = meta("base");

/** Whether the browser has a log-in, which may have ended. */
export const loggedIn = Boolean(meta("csrf"));

/** Something that was refused: RFC 9457, in the reader's words where we have some; status 0 if nobody answered. */
export class Problem extends Error {
  /** @param {number} status @param {{code?: string, detail?: string, errors?: {field: string}[]}} said */
  constructor(status, said) {
    super(tOr(`problem.${said.code}`, said.detail ?? `${status}`));
    this.status = status;
    this.code = said.code ?? "";
    this.field = said.errors?.[0]?.field ?? "";
  }
}

/**
 * Ask the service.
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

/** The JSON of a path, with its numbers as they are written. @param {string} path */
export async function get(path) {
  return exactly(await (await call("GET", path)).text());
}

/** Go to one of our pages. @param {string} path */
export const go = (path) => location.assign(base + path);

/** The log-in is over: log in again, and come back to this page. */
export function logInAgain() {
  const here = location.pathname.slice(base.length) + location.search;
  location.replace(`${base}/login?next=${encodeURIComponent(here)}`);
}

/**
 * Show what went wrong; whose log-in is over is sent to log in.
 * @param {HTMLElement} place
 * @param {unknown} error
 */
export function showProblem(place, error) {
  if (!(error instanceof Problem)) throw error;
  if (error.status === 401) return logInAgain();
  place.textContent = error.message;
  place.hidden = false;
}
