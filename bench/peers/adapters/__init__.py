"""One program per system; `_common` describes its interface."""
