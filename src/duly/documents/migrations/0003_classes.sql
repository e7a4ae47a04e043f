-- What documents are: what was said of them and why, what somebody confirmed, what was learned from that, and
-- where documents of a type belong.

create table documents.classifications (
    org_id uuid not null,
    classification_id uuid not null default duly.uuid7(),
    document_id uuid not null,
    version integer not null check (version > 0),
    doc_type text not null check (doc_type ~ '^[a-z][a-z0-9_]{1,39}$'),
    confidence real not null check (confidence between 0 and 1),
    -- Whether it was too unsure to be believed.
    review boolean not null,
    suggested_node uuid,
    evidence jsonb not null default '[]' check (jsonb_typeof(evidence) = 'array'),
    model_version text not null,
    -- Who agreed that the text left the house, where somebody outside was asked.
    consent_given_by text,
    created_at timestamptz not null default duly.now(),
    primary key (org_id, classification_id),
    foreign key (org_id, document_id) references documents.documents on delete cascade,
    foreign key (org_id, suggested_node) references documents.nodes on delete set null (suggested_node)
);
create index on documents.classifications (org_id, document_id, classification_id);
create index on documents.classifications (org_id, suggested_node) where suggested_node is not null;

-- What people say a document is. The last one counts, for the document and for learning.
create table documents.confirmations (
    org_id uuid not null,
    confirmation_id uuid not null default duly.uuid7(),
    document_id uuid not null,
    doc_type text not null check (doc_type ~ '^[a-z][a-z0-9_]{1,39}$'),
    confirmed_by text not null,
    confirmed_at timestamptz not null default duly.now(),
    primary key (org_id, confirmation_id),
    foreign key (org_id, document_id) references documents.documents on delete cascade
);
create index on documents.confirmations (org_id, document_id, confirmation_id);

-- What was learned. The weights are a file of the org; the hash says whether it is still what was trained.
create table documents.class_models (
    org_id uuid not null references duly.organizations,
    model_version text not null,
    blob text,
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    labels text[] not null,
    examples integer not null,
    -- On documents that it had not seen, together with the rules; and the rules alone.
    accuracy real not null,
    rules_accuracy real not null,
    report jsonb not null,
    job_id uuid,
    active boolean not null,
    trained_at timestamptz not null default duly.now(),
    primary key (org_id, model_version),
    check (not active or blob is not null)
);
create unique index on documents.class_models (org_id) where active;

-- Where documents of a type belong.
create table documents.filing_rules (
    org_id uuid not null,
    doc_type text not null check (doc_type ~ '^[a-z][a-z0-9_]{1,39}$'),
    node_id uuid not null,
    set_by text not null,
    set_at timestamptz not null default duly.now(),
    primary key (org_id, doc_type),
    foreign key (org_id, node_id) references documents.nodes on delete cascade
);
create index on documents.filing_rules (org_id, node_id);

select documents.isolate(t::regclass) from unnest(array[
    'documents.classifications', 'documents.confirmations', 'documents.class_models', 'documents.filing_rules'
]) t;
