"""The pure rules of a job: states, transitions, policies, decisions, freshness, payloads and errors.

Nothing here does I/O, reads a clock or draws a random number; imports are limited to the standard
library, pydantic and cronsim.
"""
