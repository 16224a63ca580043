"""Largest values that the command line, configs and the parts that use them agree on."""

MOST_RANKS = 1_024  # on one machine: more processes than any has cores or GPUs for
WIDEST_BEAM = 100  # hypotheses of a sentence; past some tens translations get worse, not better
LONGEST_TRANSLATION = 1_024  # tokens, EOS included, of one sentence: a source sentence has at most 128
