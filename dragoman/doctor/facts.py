"""The facts of a host: plain values that travel as JSON and are compared elsewhere."""

from __future__ import annotations

from ipaddress import ip_address

from pydantic import BaseModel

from dragoman.cost.capability import Capability, has_kernels


class Interface(BaseModel):
    name: str
    is_up: bool
    addresses: list[str]
    # From the driver. It does not measure capacity: a virtual interface says 10,000 whatever the link does.
    reported_megabits: int = 0


class Gpu(BaseModel):
    name: str
    memory_bytes: int
    free_bytes: int


class UsableGpu(BaseModel):
    """A GPU that torch may use."""

    name: str
    capability: Capability
    memory_bytes: int


class GpuFacts(BaseModel):
    """All GPUs that NVIDIA's driver lists, and those of them that torch may use."""

    driver: str | None = None
    listed: list[Gpu] = []
    usable: list[UsableGpu] = []  # in torch's order: local rank 0 gets the first
    cuda: str | None = None  # the version torch was built for; None: CPUs only
    architectures: list[str] = []  # that torch has kernels for, such as sm_90

    def used_by(self, ranks: int) -> list[UsableGpu]:
        """The GPUs of this many ranks on the host."""
        return self.usable[:ranks]

    def add(self, other: GpuFacts) -> None:
        """Adds the GPU of a further rank that sees only its own, as srun shows it with --gpus-per-task."""
        self.usable += other.usable
        if len(self.listed) < len(self.usable):  # the driver, too, may show each rank only its own
            self.listed += other.listed

    def has_kernels(self, gpu: UsableGpu) -> bool:
        return has_kernels(gpu.capability, self.architectures)


class DataFacts(BaseModel):
    path: str
    fingerprint: str | None = None
    vocabulary: int = 0  # pieces
    sentence_tokens: float = 0.0  # mean of both sides of the training part
    problem: str = ""  # why it cannot be used
    hint: str = ""


class OtherProgram(BaseModel):
    """A program that does not belong to the run."""

    name: str
    cores: float  # used while the host was examined


class HostFacts(BaseModel):
    """One host. Facts that take time, or other hosts, to find out have a default and are filled in later."""

    name: str
    boot: str  # differs between machines, even if they were cloned from one image
    versions: dict[str, str]
    data: DataFacts | None = None
    interfaces: list[Interface] = []
    disk_path: str
    disk_free_bytes: int
    run_problem: str = ""  # why the run folder cannot be used
    checkpoint_bytes: int = 0  # of this run, already on this disk
    memory_bytes: int
    memory_available_bytes: int
    cores: int
    core_numbers: list[int] = []  # that this process may use; some launchers give each rank its own
    load: float  # processes that want a core, mean over a minute
    programs: list[OtherProgram] = []  # the busiest of those visible to this process
    gpus: GpuFacts = GpuFacts()
    peaks: list[float] = []  # FLOP/s of each device, or of each rank
    ranks: int = 1
    own_name_addresses: list[str] = []  # what its name resolves to on the host itself
    clock_offset_seconds: float | None = None  # ahead of the first host
    clock_error_seconds: float = 0.0  # half the round trip of the reading
    interface: str = ""  # towards the other hosts

    @property
    def addresses(self) -> list[str]:
        """The addresses at which others may reach it."""
        return [
            address
            for interface in self.interfaces
            if interface.is_up
            for address in interface.addresses
            if not is_local(address)
        ]


def is_local(address: str) -> bool:
    """Does the address mean something else on every machine, so that no other host can use it?"""
    parsed = ip_address(address)
    return parsed.is_loopback or parsed.is_link_local
