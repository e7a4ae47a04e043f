-- Purpose: what was said of a document, with the folder where such documents belong unless it is closed.
insert into documents.classifications
    (org_id, document_id, version, doc_type, confidence, review, suggested_node, evidence, model_version,
     consent_given_by)
select d.org_id, d.document_id, d.version, %(doc_type)s, %(confidence)s, %(review)s, f.node_id, %(evidence)s,
       %(model_version)s, %(consent_given_by)s
from documents.documents d
left join documents.filing_rules f on f.org_id = d.org_id and f.doc_type = %(doc_type)s
    and f.node_id <> all(%(hidden_folders)s)
where d.org_id = %(org_id)s and d.document_id = %(document_id)s
returning to_jsonb(classifications) - 'org_id'
