"""The wording of reports, answers, checks and errors, kept as files: a reworded sentence shows in a diff.

Tests elsewhere hold sentences to their facts alone. `python -m tests.golden` writes the files anew; what is
rendered comes from recorded runs, logs and invented records, and nothing is trained for it.
"""
