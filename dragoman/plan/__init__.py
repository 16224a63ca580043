"""`dragoman plan`: forecasts the time, money, disk and memory of a run with the model in `cost`. No torch.

`doctor` checks hosts against `needs`, and `report` compares a run with its plan.
"""
