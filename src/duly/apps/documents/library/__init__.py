"""The documents of an org: files, versions, quotas, removal."""
