/**
 * Turn one tree of elements into another with few changes: equal nodes are not touched, so that nothing flickers, and
 * focus, selections, open details and typed texts are preserved.
 */

const TYPED = new Set(["INPUT", "TEXTAREA", "SELECT"]);
/** Attributes that the user changes, not the server. */
const USER_ATTRIBUTES = new Set(["open", "data-theirs"]);

/** @param {Element} old @param {Element} fresh */
export function morph(old, fresh) {
  const byId = new Map();
  for (const child of old.children) if (child.id) byId.set(child.id, child);
  let cursor = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    // White space before an element is dropped: a parser drops it before the first one.
    while (cursor && blank(cursor) && next instanceof Element) {
      const after = cursor.nextSibling;
      cursor.remove();
      cursor = after;
    }
    const found = match(cursor, next, byId);
    if (!found) {
      old.insertBefore(document.importNode(next, true), cursor);
      continue;
    }
    if (found !== cursor) old.insertBefore(found, cursor);
    else cursor = cursor.nextSibling;
    update(found, next);
  }
  while (cursor) {
    const after = cursor.nextSibling;
    cursor.remove();
    cursor = after;
  }
}

/** @param {Node} node */
const blank = (node) => node.nodeType === Node.TEXT_NODE && !node.nodeValue?.trim();

/** The node that becomes the next one: the one with its id, or the one at the cursor if neither has an id. */
function match(cursor, next, byId) {
  const id = next instanceof Element && next.id;
  if (id) {
    const found = byId.get(id);
    return found?.nodeName === next.nodeName && found.parentNode ? found : null;
  }
  if (!cursor || cursor.nodeType !== next.nodeType || cursor.nodeName !== next.nodeName) return null;
  return cursor instanceof Element && cursor.id ? null : cursor;
}

function update(old, fresh) {
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
    if (!USER_ATTRIBUTES.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!USER_ATTRIBUTES.has(name) && !isOwn(old, name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
}

/** Attributes that the scripts of the page have set. */
const isOwn = (old, name) => (old.nodeName === "TIME" && name === "title") || name === "tabindex";
