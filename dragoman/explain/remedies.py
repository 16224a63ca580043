"""How the program that made a run is told to do what relieves its network: its own options, not ours."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dragoman.exchange_way import LOCAL_STEPS
from dragoman.measure.records import RunFacts

MORE_TOKENS = 4  # times those of a step, in the advice


@dataclass(frozen=True)
class Remedies:
    """What to change, or nothing where no option is known. None where the program cannot do it."""

    half: str = ""  # gradients of two bytes on the wire
    inside: str | None = ""  # sums inside each host before anything crosses between hosts
    rarely: str | None = ""  # several steps between exchanges
    more: str = ""  # more tokens between exchanges


OURS = Remedies("--set sync.wire=bf16", "--set sync.hierarchical=true", "--set sync.mode=diloco", "data.step")
# As their sources and documentation name them. OpenSeq2Seq calls Horovod's allreduce without a compression.
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
    """Without options for a program that is not known, as when facts alone were given."""
    known = _BY_PROGRAM.get(facts.source, Remedies())
    return replace(known, more=more_tokens(facts) or known.more)


def more_tokens(facts: RunFacts) -> str:
    """The option that makes steps of a run of ours larger; nothing where their size is not known."""
    size = facts.settings.get("data.step")
    if facts.source != "dragoman" or not isinstance(size, int):
        return ""
    return f"--set data.step={MORE_TOKENS * size}"


def setting(facts: RunFacts, key: str, value: object) -> str:
    """` (--set key=value)` for a run of ours, which takes that; nothing for another program's."""
    return f" (--set {key}={value})" if facts.source == "dragoman" else ""


def named(what: str, option: str) -> str:
    """`what (option)`, or `what` alone."""
    return f"{what} ({option})" if option else what
