"""Webhooks: signed HTTP messages about the events of jobs, in order for each job.

The relay writes deliveries; the deliverer sends them to the endpoints of orgs. An endpoint is untrusted: it
may be slow, broken, or point to an address that Duly must not connect to.
"""
