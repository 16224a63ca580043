"""The cost model of a step, shared by advice about a run and by plans for one.

`flops`, `size`, `needs`, `step` and `gpu_types` are the model: pure arithmetic, which `explain`, `doctor` and
`sync` use too. The others make plans with it. No torch here, but for the ranks of a calibration.
"""
