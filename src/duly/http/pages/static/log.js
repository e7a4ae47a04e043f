/** The lines that a job has logged, as they come. */

import { call } from "./api.js";
import { el } from "./dom.js";
import { t, time } from "./words.js";

const PAGE = 500;
const SHOWN = 300;

/** A list that knows how far it has read. */
export class Log {
  /** @param {HTMLElement} list @param {string} jobId */
  constructor(list, jobId) {
    this.list = list;
    this.path = `/v1/jobs/${jobId}/logs?limit=${PAGE}`;
    this.after = "";
    this.reading = null;
  }

  /** Read on, to the end. Whoever comes meanwhile waits for the same. */
  update() {
    this.reading ??= this.read().finally(() => (this.reading = null));
    return this.reading;
  }

  async read() {
    for (;;) {
      const answer = await call("GET", this.path + (this.after && `&after=${encodeURIComponent(this.after)}`));
      const page = await answer.json();
      for (const line of page.lines) this.add(line);
      this.after = page.after ?? "";
      if (page.lines.length < PAGE) return;
    }
  }

  add(line) {
    const when = el("time", { datetime: line.logged_at, title: line.logged_at }, time(line.logged_at));
    const attempt = line.attempt > 1 ? ` ${t("log.attempt", { n: line.attempt })}` : "";
    const said = el("span", { class: "said" }, line.message);
    this.list.append(el("li", { "data-level": line.level }, when, `${attempt} ${line.level} `, said));
    if (this.list.childElementCount > SHOWN) this.list.firstElementChild.remove();
  }
}
