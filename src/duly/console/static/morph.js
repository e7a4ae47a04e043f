/**
 * Makes one tree of elements into another, with as few changes as it takes: what stays the same is not touched, so
 * that nothing flickers, and focus, selections, open details and typed texts stay as they are.
 */

const TYPED = new Set(["INPUT", "TEXTAREA", "SELECT"]);
/** What belongs to the visitor and not to the server. */
const THEIRS = new Set(["open", "data-theirs"]);

/** @param {Element} old @param {Element} fresh */
export function morph(old, fresh) {
  const byId = new Map();
  for (const child of old.children) if (child.id) byId.set(child.id, child);
  let place = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    // Blanks before an element are nobody's: a parser drops those before the first one.
    while (place && blank(place) && next instanceof Element) {
      const after = place.nextSibling;
      place.remove();
      place = after;
    }
    const found = match(place, next, byId);
    if (!found) {
      old.insertBefore(document.importNode(next, true), place);
      continue;
    }
    if (found !== place) old.insertBefore(found, place);
    else place = place.nextSibling;
    same(found, next);
  }
  while (place) {
    const after = place.nextSibling;
    place.remove();
    place = after;
  }
}

/** @param {Node} node */
const blank = (node) => node.nodeType === Node.TEXT_NODE && !node.nodeValue?.trim();

/** The node that stands for the next one: the one with its id, or the one in its place if neither has one. */
function match(place, next, byId) {
  const id = next instanceof Element && next.id;
  if (id) {
    const found = byId.get(id);
    return found?.nodeName === next.nodeName && found.parentNode ? found : null;
  }
  if (!place || place.nodeType !== next.nodeType || place.nodeName !== next.nodeName) return null;
  return place instanceof Element && place.id ? null : place;
}

function same(old, fresh) {
  if (!(old instanceof Element)) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old.nodeName === "TIME" && old.getAttribute("datetime") === fresh.getAttribute("datetime")) return;
  if (old.isEqualNode(fresh)) return;
  attributes(old, fresh);
  if (TYPED.has(old.nodeName)) return;
  morph(old, fresh);
}

function attributes(old, fresh) {
  for (const { name, value } of [...fresh.attributes]) {
    if (!THEIRS.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!THEIRS.has(name) && !kept(old, name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
}

/** What our own modules have set: a time's title, and what was shown because there are scripts. */
const kept = (old, name) => (old.nodeName === "TIME" && name === "title") || name === "tabindex";
