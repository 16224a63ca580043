"""The cost of a step: bytes, FLOPs, sizes and seconds, as arithmetic on plain numbers. No torch, no config.

`sync` uses it to choose an exchange, `explain` to say what a change would gain, `plan` to forecast a run.
"""
