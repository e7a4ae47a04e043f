"""Clients of Dropbox, OneDrive and Google Drive behind one protocol, `remote.Remote`."""
