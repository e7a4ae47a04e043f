-- Purpose: a secret that signs from now on. Only the engine reads it.
insert into duly.webhook_secrets (org_id, endpoint_id, secret_id, secret)
values (%(org_id)s, %(endpoint_id)s, duly.uuid7(), %(secret)s)
