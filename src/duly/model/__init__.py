"""The pure model: what a job is, which states it may pass, and who decides.

Here live the vocabulary (states, outcomes, events), the one transition table, the policies,
the function `decide` that turns an outcome into a transition, freshness, payload rules and the
error tree. Nothing here does I/O, reads a clock or draws a random number; it may import only
the standard library, pydantic and cronsim, which only computes.
"""
