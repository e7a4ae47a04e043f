"""Keep handlers from harming the worker: threads, processes, and a watchdog of the event loop."""
