/** Following a job: told of each event by a stream; where there is none, by polls that wait for news. */

import { base, call, logInAgain, Problem } from "./api.js";

const WAIT = 20;
const PACE = 250;
const LONGEST_PAUSE = 15_000;
const ENDED = new Set(["completed", "failed", "canceled"]);

const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));

/** Whether a job never changes again. @param {{status: string}} job */
export const ended = (job) => ENDED.has(job.status);

/** One reader of one job. */
export class Follower {
  /**
   * @param {string} jobId
   * @param {string[]} names the types of events
   * @param {{job: (job: any) => Promise<void>, note: (text: string) => void, offline: (is: boolean) => void}} tell
   */
  constructor(jobId, names, tell) {
    this.path = `/v1/jobs/${jobId}`;
    this.names = names;
    this.tell = tell;
    this.etag = "";
    this.job = null;
    this.looking = null;
    this.again = false;
  }

  /** Follow it to its end. */
  async start() {
    await this.look();
    if (ended(this.job)) return;
    this.listen();
    // Nobody sends an event when nothing happens: whether it is stale shows here.
    this.timer = setInterval(() => document.hidden || this.look(), WAIT * 1000);
    document.addEventListener("visibilitychange", () => document.hidden || this.look());
  }

  /** Look at the job now. However many ask, one looks at a time, and once more if somebody asked meanwhile. */
  look() {
    this.again = true;
    this.looking ??= this.looks().finally(() => (this.looking = null));
    return this.looking;
  }

  async looks() {
    while (this.again && !(this.job && ended(this.job))) {
      this.again = false;
      await this.fetch(0);
      if (this.again) await pause(PACE);
    }
  }

  /** The job, if it has changed; with patience until it does. @param {number} wait seconds */
  async fetch(wait) {
    for (let delay = 500; ; delay = Math.min(delay * 2, LONGEST_PAUSE)) {
      try {
        await this.read(wait);
        this.tell.offline(false);
        return;
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        if (error.status === 401) return logInAgain();
        if (error.status === 404) return location.reload();
        this.tell.offline(true);
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
    await this.tell.job(this.job);
    this.etag = answer.headers.get("etag");
  }

  /** By the stream; the last few events again, because one of them may have a note. */
  listen() {
    const after = Math.max(0, this.job.event_seq - 10);
    this.stream = new EventSource(`${base}${this.path}/events?after=${after}`);
    this.stream.onopen = () => this.tell.offline(false);
    this.stream.onerror = () => {
      // The browser tries again by itself, unless the service has refused the stream.
      if (this.stream.readyState === EventSource.CLOSED) this.poll();
      else this.look();
    };
    for (const name of this.names) this.stream.addEventListener(name, (event) => this.hear(event));
  }

  /** @param {MessageEvent} event */
  hear(event) {
    const { payload } = JSON.parse(event.data);
    if (payload.note) this.tell.note(payload.note);
    this.look();
  }

  /** By polls: the service answers when there is news. */
  async poll() {
    while (!ended(this.job)) await this.fetch(WAIT);
  }

  stop() {
    this.stream?.close();
    clearInterval(this.timer);
  }
}
