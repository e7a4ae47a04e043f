-- Purpose: whether somebody may do everything everywhere in the transaction's org.
select documents.is_admin(%(principal)s)
