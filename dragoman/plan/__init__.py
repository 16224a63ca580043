"""The cost model of a step, shared by advice about a run and by plans for one. No torch here."""
