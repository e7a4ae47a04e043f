"""Events of jobs: the feed of an org, the events of one job, and the relay to webhooks and notifications."""
