"""The doctor checks an installation, and says what is wrong and how to fix it.

Each check is a function; checks change nothing, and a check that crashes does not stop the others.
"""
