"""Full text search in the passages of documents: German and English, ranked by BM25, inside PostgreSQL.

Whoever may not see a folder gets nothing of what lies in it: no passage, no name, no count, and no
correction, since those are told in words of passages that are shown. How common a word is counts over the
whole org: the order of hits, and whether a slip was corrected, may depend on documents that one cannot see.
"""
