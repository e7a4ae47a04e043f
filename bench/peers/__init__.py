"""Duly compared with other job queues, on one machine, in one run."""
