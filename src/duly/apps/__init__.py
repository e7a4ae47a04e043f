"""Applications built on the public API: text analysis and documents."""
