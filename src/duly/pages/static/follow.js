/** Follow a job by its event stream; without one, by long polling. */

import { base, call, Problem, signInAgain } from "./api.js";

const WAIT = 20;
const MIN_INTERVAL = 250;
const MAX_BACKOFF = 15_000;
const ENDED = new Set(["completed", "failed", "canceled"]);

const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));

/** Whether a job never changes again. @param {{status: string}} job */
export const ended = (job) => ENDED.has(job.status);

/** Follows one job. */
export class Follower {
  /**
   * @param {string} jobId
   * @param {string[]} names the types of events
   * @param {{job: (job: any) => Promise<void>, note: (text: string) => void, offline: (is: boolean) => void}} handlers
   */
  constructor(jobId, names, handlers) {
    this.path = `/v1/jobs/${jobId}`;
    this.names = names;
    this.handlers = handlers;
    this.etag = "";
    this.job = null;
    this.refreshing = null;
    this.again = false;
  }

  /** Follow it to its end. */
  async start() {
    await this.refresh();
    if (ended(this.job)) return;
    this.listen();
    // A stale job has no events: poll as well.
    this.timer = setInterval(() => document.hidden || this.refresh(), WAIT * 1000);
    document.addEventListener("visibilitychange", () => document.hidden || this.refresh());
  }

  /** Refresh the job. Concurrent calls share one request, followed by one more. */
  refresh() {
    this.again = true;
    this.refreshing ??= this.refreshAll().finally(() => (this.refreshing = null));
    return this.refreshing;
  }

  async refreshAll() {
    while (this.again && !(this.job && ended(this.job))) {
      this.again = false;
      await this.fetch(0);
      if (this.again) await pause(MIN_INTERVAL);
    }
  }

  /** Fetch the job if it has changed, waiting for a change; retry until it works. @param {number} wait seconds */
  async fetch(wait) {
    for (let delay = 500; ; delay = Math.min(delay * 2, MAX_BACKOFF)) {
      try {
        await this.read(wait);
        this.handlers.offline(false);
        return;
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        if (error.status === 401) return signInAgain();
        if (error.status === 404) return location.reload();
        this.handlers.offline(true);
        await pause(delay);
      }
    }
  }

  async read(wait) {
    const headers = this.etag ? { "if-none-match": this.etag } : {};
    if (wait) headers.prefer = `wait=${wait}`;
    const answer = await call("GET", this.path, { headers });
    if (answer.status === 304) return;
    this.job = await answer.json();
    if (ended(this.job)) this.stop();
    await this.handlers.job(this.job);
    this.etag = answer.headers.get("etag");
  }

  /** Follow the stream, from the last few events on: one of them may have a note. */
  listen() {
    const after = Math.max(0, this.job.event_seq - 10);
    this.stream = new EventSource(`${base}${this.path}/events?after=${after}`);
    this.stream.onopen = () => this.handlers.offline(false);
    this.stream.onerror = () => {
      // The browser reconnects, unless the service rejected the stream.
      if (this.stream.readyState === EventSource.CLOSED) this.poll();
      else this.refresh();
    };
    for (const name of this.names) this.stream.addEventListener(name, (event) => this.onEvent(event));
  }

  /** @param {MessageEvent} event */
  onEvent(event) {
    const { payload } = JSON.parse(event.data);
    if (payload.note) this.handlers.note(payload.note);
    this.refresh();
  }

  /** Follow by long polling: the service answers when the job changes. */
  async poll() {
    while (!ended(this.job)) await this.fetch(WAIT);
  }

  stop() {
    this.stream?.close();
    clearInterval(this.timer);
  }
}
