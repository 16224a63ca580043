"""What a step costs: bytes, FLOPs, sizes and seconds, as arithmetic on plain numbers. No torch, no config.

`sync` chooses an exchange with it, `explain` says what a change would gain, `plan` forecasts a run.
"""
