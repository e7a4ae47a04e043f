"""Classification: the type of a document, by rules, a model trained on confirmations, or a remote service."""
