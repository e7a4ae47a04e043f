"""Shared by the benchmarks: a server, statistics, and charts without a library."""
