"""Documents of an org: kept, read, classified, found, brought in and given out.

Built as a user of Duly would build it: tables of its own, jobs, the public calls. Nobody below knows it.
"""
