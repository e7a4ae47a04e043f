-- Purpose: the folders of the transaction's org that are closed to somebody, and those in which they may change nothing.
select documents.barred(%(principal)s, 'read'), documents.barred(%(principal)s, 'write')
