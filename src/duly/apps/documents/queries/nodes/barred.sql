-- Purpose: the folders of the transaction's org that are closed to somebody.
select documents.barred(%(principal)s, %(level)s)
