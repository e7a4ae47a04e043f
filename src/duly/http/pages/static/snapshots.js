/** The partial results of a job, the newest first, as they come. */

import { get } from "./api.js";
import { el } from "./dom.js";
import { part } from "./values.js";
import { t, time } from "./words.js";

const SHOWN = 30;

/** A list that knows how far it has read. */
export class Snapshots {
  /** @param {HTMLElement} place @param {string} resultId @param {string} jobType */
  constructor(place, resultId, jobType) {
    this.path = `/v1/results/${resultId}`;
    this.jobType = jobType;
    this.after = 0;
    this.count = 0;
    this.list = el("div", { class: "snapshots" });
    this.earlier = el("p", { class: "hint", hidden: true });
    place.replaceChildren(this.list, this.earlier);
  }

  /** Read on, up to this number. @param {number} latest */
  async update(latest) {
    while (this.after < latest) {
      const page = await get(`${this.path}/snapshots?after=${this.after}`);
      if (page.after <= this.after) break;
      this.after = page.after;
      for (const snapshot of page.snapshots) if (snapshot.kind === "partial") this.add(snapshot);
    }
  }

  add(snapshot) {
    this.count += 1;
    const [name, value] = part(this.jobType, snapshot, this.path);
    const head = el("h3", {}, name, " ", el("time", { datetime: snapshot.created_at }, time(snapshot.created_at)));
    this.list.prepend(el("article", { class: "card snapshot" }, head, value));
    if (this.list.childElementCount > SHOWN) this.list.lastElementChild.remove();
    const n = this.count - this.list.childElementCount;
    this.earlier.hidden = n === 0;
    this.earlier.textContent = t("partials.earlier", { n });
  }
}
