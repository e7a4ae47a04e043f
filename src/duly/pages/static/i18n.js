/** Texts, numbers and times in the language of the page. */

export const language = document.documentElement.lang;
const { default: texts } = await import(`./texts.${language}.js`);
/** The language with the reader's region: en-GB has 24 hours. */
const locale = navigator.languages.find((one) => one.startsWith(language)) ?? language;
const when = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium" });
const hover = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "long" });
const clock = new Intl.DateTimeFormat(locale, { timeStyle: "medium" });
const day = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeZone: "UTC" });
const month = new Intl.DateTimeFormat(locale, { month: "short", year: "numeric", timeZone: "UTC" });
/** The most fraction digits that every browser can format. */
const MAX_DIGITS = 20;
const numbers = new Intl.NumberFormat(locale, { maximumFractionDigits: 2 });

/**
 * A text by its message id, with `{name}` filled in; plural forms are chosen by `n`.
 * @param {string} key
 * @param {Record<string, unknown>} [values]
 */
export function t(key, values = {}) {
  const text = Array.isArray(texts[key]) ? texts[key][String(values.n) === "1" ? 0 : 1] : texts[key];
  return text.replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}

/** A text by its message id, or a fallback. @param {string} key @param {string} fallback */
export const textOr = (key, fallback) => texts[key] ?? fallback;

/** A moment in the reader's own time; of today, without the date. @param {string | null} at */
export function time(at) {
  if (!at) return "";
  const date = new Date(at);
  return date.toDateString() === new Date().toDateString() ? clock.format(date) : when.format(date);
}

/** A moment with its date. @param {string} at */
export const fullTime = (at) => when.format(new Date(at));

/** A moment with its date and the time zone, for the title of a time element. @param {string} at */
export const zonedTime = (at) => hover.format(new Date(at));

/** A date, or a month; an invalid date stays as it is. @param {string} iso */
export function plainDate(iso) {
  const date = new Date(iso);
  if (!/^\d{4}-\d\d(-\d\d)?$/.test(iso) || Number.isNaN(date.getTime()) || !date.toISOString().startsWith(iso)) return iso;
  return (iso.length === 7 ? month : day).format(date);
}

/** The progress in whole percent: 100 means that the job succeeded. @param {{status: string, progress_percent: number}} job */
export const progress = (job) => (job.status === "completed" ? 100 : Math.min(99, Math.floor(job.progress_percent)));

/** A count, or another number that may be rounded. @param {number} value */
export const number = (value) => numbers.format(value);

/** A decimal number with all of its digits. @param {string} text */
export function decimal(text) {
  const digits = text.split(".")[1]?.length ?? 0;
  if (digits > MAX_DIGITS) return text;
  return new Intl.NumberFormat(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(text);
}

/** @param {number} share from 0 to 1 */
export const percent = (share) => new Intl.NumberFormat(locale, { style: "percent" }).format(share);

/** @param {number} count of bytes */
export function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let place = 0;
  while (count >= 1024 && place < units.length - 1) {
    count /= 1024;
    place += 1;
  }
  return `${new Intl.NumberFormat(locale, { maximumFractionDigits: place ? 1 : 0 }).format(count)} ${units[place]}`;
}
