-- Purpose: documents of this type belong nowhere in particular.
delete from documents.filing_rules where org_id = %(org_id)s and doc_type = %(doc_type)s
