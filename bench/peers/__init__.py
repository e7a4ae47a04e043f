"""Duly beside other job queues, on one machine, in one run."""
