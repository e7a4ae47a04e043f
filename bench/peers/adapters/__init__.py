"""One program for each system; `_common` says what such a program is."""
