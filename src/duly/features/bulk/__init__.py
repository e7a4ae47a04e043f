"""Bulk actions: preview, then one job `duly.bulk` that changes every matching job in batches.

Each batch commits together with its cursor, so nothing is done twice when a worker dies.
"""
