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

/** A time by the clock of another zone; undefined if the browser does not know the zone. @param {Date} at @param {string} zone */
function zoned(at, zone) {
  try {
    const parts = { weekday: "short", day: "2-digit", month: "2-digit", year: "numeric", hour: "2-digit", minute: "2-digit" };
    const seconds = at.getUTCSeconds() ? { second: "2-digit" } : {};
    return new Intl.DateTimeFormat(locale, { ...parts, ...seconds, timeZone: zone }).format(at);
  } catch {
    return undefined;
  }
}

/** @type {Record<string, (at: Date, time: HTMLTimeElement) => string>} */
const STYLES = {
  full: (at) => full.format(at),
  clock: (at) => clock.format(at),
  zoned: (at, time) => zoned(at, time.dataset.zone ?? "") ?? time.textContent,
};

/** @param {HTMLTimeElement} time */
function show(time) {
  const at = new Date(time.dateTime);
  if (Number.isNaN(at.getTime())) return;
  const text = (STYLES[time.dataset.as ?? ""] ?? distance)(at, time);
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
