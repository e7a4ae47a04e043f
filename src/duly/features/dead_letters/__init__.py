"""Dead letters: jobs that failed for good, and their replay, fix or discard."""
