"""Logs, metrics and traces. An import configures nothing: the program that runs the process does that."""
