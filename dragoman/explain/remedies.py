"""The options of the program that made a run which would relieve its network."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dragoman.exchange_way import LOCAL_STEPS
from dragoman.measure.records import RunFacts

MORE_TOKENS = 4  # the advice multiplies the tokens of a step by this


@dataclass(frozen=True)
class Remedies:
    """The option for each remedy; empty if it is not known, None if the program cannot do it."""

    half: str = ""  # sends gradients as two bytes
    inside: str | None = ""  # sums inside each host before anything crosses between hosts
    rarely: str | None = ""  # makes several steps between exchanges
    more: str = ""  # computes more tokens between exchanges


OURS = Remedies("--set sync.wire=bf16", "--set sync.hierarchical=true", "--set sync.mode=diloco", "data.step")
# Options as named in source code and documentation. OpenSeq2Seq calls Horovod's allreduce uncompressed.
_BY_PROGRAM = {
    "dragoman": OURS,
    "OpenSeq2Seq": Remedies(
        half="fp16: allreduce(grad, compression=Compression.fp16) in reduce_gradients of "
        "open_seq2seq/optimizers/optimizers.py",
        inside="mpirun -x HOROVOD_HIERARCHICAL_ALLREDUCE=1",
        rarely=None,
        more=f"iter_size {MORE_TOKENS} times as large, with Horovod",
    ),
    "fairseq": Remedies(
        half="--ddp-comm-hook fp16",
        inside=None,
        rarely=f"--ddp-backend slowmo --slowmo-algorithm LocalSGD --localsgd-frequency {LOCAL_STEPS}",
        more=f"--update-freq {MORE_TOKENS} times as large",
    ),
    "Hugging Face Trainer": Remedies(
        half="bf16: a DDP communication hook, in accelerate "
        "DistributedDataParallelKwargs(comm_hook=DDPCommunicationHookType.BF16)",
        inside=None,
        rarely=f"accelerate's LocalSGD with local_sgd_steps={LOCAL_STEPS}, in a loop of your own",
        more=f"gradient_accumulation_steps {MORE_TOKENS} times as large",
    ),
}


def of(facts: RunFacts) -> Remedies:
    """Returns the options of the run's program; none if it is not known, as when only facts were given."""
    known = _BY_PROGRAM.get(facts.source, Remedies())
    return replace(known, more=more_tokens(facts) or known.more)


def more_tokens(facts: RunFacts) -> str:
    """Returns the option that makes steps of our runs larger; empty if their size is not known."""
    size = facts.settings.get("data.step")
    if facts.source != "dragoman" or not isinstance(size, int):
        return ""
    return f"--set data.step={MORE_TOKENS * size}"


def setting(facts: RunFacts, key: str, value: object) -> str:
    """Returns ` (--set key=value)` for our runs, and nothing for other programs'."""
    return f" (--set {key}={value})" if facts.source == "dragoman" else ""


def named(what: str, option: str) -> str:
    """Returns `what (option)`, or `what` if there is no option."""
    return f"{what} ({option})" if option else what
