"""The modules of the analysis: pure functions from text to a frozen result."""
