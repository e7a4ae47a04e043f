"""What is seen of the work: logs, metrics and traces. Imports the model only; who works tells what happened.

`fields` says what a line may carry beside its message, `logs` has lines written as JSON or for people,
`metrics` holds every number by its name, `traces` makes spans. Nothing is set up by an import: whoever runs
the process does that.
"""
