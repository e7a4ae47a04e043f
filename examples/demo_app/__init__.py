"""What `./dev demo` fills Duly with: the customers of a small bookkeeping product, and everything they do.

Real workers, real jobs, and nothing that a user of Duly could not do: jobs are asked for over HTTP by `load`,
done by the processes of the `crew`, and looked at by `checking`, which asks whether all was as promised.
"""
