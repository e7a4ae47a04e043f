-- Purpose: whether anything may have to be sent at all. Most installations have no webhooks, and ask this once a second.
select exists (select from duly.webhook_endpoints where disabled_at is null)
