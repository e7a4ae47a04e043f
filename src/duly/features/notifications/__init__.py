"""Notifications to people: by e-mail, in the product, by webhook or by other channels.

A row of `duly.notifications` is a message to one recipient. The dispatcher reads due rows: in-app
notifications are sent at once, webhooks go to the webhook deliverer, all others become delivery jobs. A
notification is never part of the job that it is about: that job has committed before.
"""
