"""What operators do: dead letters, schedules, queues and limits, each change audited.

The doors (CLI, HTTP, console) are thin skins over these. They may touch the client, the store and the model.
"""
