/** Elements, made with text only: nothing that comes from outside is ever read as HTML. */

/**
 * An element of the page, by its id.
 * @param {string} id
 * @returns {any}
 */
export const the = (id) => document.getElementById(id);

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

/** Show a text in an element, or hide it if there is none. @param {HTMLElement} place @param {string} text */
export function say(place, text) {
  if (place.textContent !== text) place.textContent = text;
  place.hidden = !text;
}

/**
 * Names and values in a list of facts.
 * @param {HTMLElement} list a `dl`
 * @param {[string, Node | string | null | undefined][]} facts those without a value are left out
 */
export function tell(list, facts) {
  const told = facts.filter(([, value]) => value !== null && value !== undefined && value !== "");
  list.replaceChildren(...told.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

/** A moment as an element. @param {string | null} at @param {(at: string) => string} format */
export const timeOf = (at, format) => (at ? el("time", { datetime: at, title: at }, format(at)) : null);
