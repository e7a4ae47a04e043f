"""Documents of an org: storage, extraction, classification, search, import and export.

An application on the public API of Duly: tables of its own, job types, and public calls. No other package
of Duly needs it.
"""
