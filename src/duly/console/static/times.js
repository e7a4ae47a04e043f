/** Times in the local zone, or as a distance from now, which is updated; the zone is shown on hover. */

const language = document.documentElement.lang;
const locale = navigator.languages.find((one) => one.startsWith(language)) ?? language;
const full = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium" });
const hover = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "long" });
const clock = new Intl.DateTimeFormat(locale, { timeStyle: "medium" });
const relative = new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "short" });
/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

/** @param {Date} at */
function distance(at) {
  const seconds = Math.round((at.getTime() - Date.now()) / 1000);
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return relative.format(Math.trunc(seconds / size), unit);
}

/** @param {HTMLTimeElement} time */
function show(time) {
  const at = new Date(time.dateTime);
  if (Number.isNaN(at.getTime())) return;
  const style = time.dataset.as;
  const text = style === "full" ? full.format(at) : style === "clock" ? clock.format(at) : distance(at);
  if (time.textContent !== text) time.textContent = text;
  const title = hover.format(at);
  if (time.title !== title) time.title = title;
}

function showAll() {
  for (const time of document.querySelectorAll("time[datetime][data-as]")) show(/** @type {any} */ (time));
}

/** Show all times, and keep the distances current. */
export function beginTimes() {
  showAll();
  document.addEventListener("duly:changed", showAll);
  setInterval(() => document.hidden || showAll(), 1000);
}
