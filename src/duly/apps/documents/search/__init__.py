"""Full text search in the passages of documents: German and English, ranked by BM25 in PostgreSQL.

`query` parses the text of the user, `query_terms` looks up its stems and their frequencies, `plan` chooses
the candidate passages, the function `documents.find_passages` of the database ranks them by BM25, and
`highlight` selects the fragments of a hit.

A principal gets nothing of a hidden folder: no passage, no name, no count, and no correction, as those
consist of words from visible passages. Document frequencies count over the whole org: the order of hits, and
whether a word was corrected, may depend on hidden documents.
"""
