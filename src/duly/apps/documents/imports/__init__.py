"""Imports from Dropbox, OneDrive and Google Drive.

`service` manages connectors and starts imports, `job` runs them, `importer` imports one file. `providers`
has a client per provider behind one protocol.
"""
