"""The doctor checks an installation, and reports problems with a fix for each.

Each check is a function; checks change nothing, and a check that crashes does not stop the others.
"""
