"""Files that clients send: whole, or in resumable parts."""
