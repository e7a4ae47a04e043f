"""Bringing documents in from elsewhere: Dropbox, OneDrive and Google Drive.

`connectors` are the accounts, `job` has the job types, `taking` brings in one file. Each provider has its
client, all of them behind `remote.Remote`; `web` asks them and `tokens` says as whom.
"""
