/** Numbers as they are written: JSON knows more of them than scripts do, as integers beyond 2^53, or 1.0. */

class Written extends Number {
  /** @param {string} text */
  constructor(text) {
    super(text);
    this.text = text;
  }

  toString() {
    return this.text;
  }
}

// Browsers that do not tell how a number was written give the nearest one that they have.
const keep = (_, value, said) =>
  typeof value === "number" && said?.source && said.source !== String(value) ? new Written(said.source) : value;

/** @param {string} text JSON */
export const exactly = (text) => JSON.parse(text, keep);

/** @param {unknown} value */
export const isNumber = (value) => typeof value === "number" || value instanceof Written;
