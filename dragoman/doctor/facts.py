"""What a host says of itself: plain values that travel as JSON and are compared elsewhere."""

from __future__ import annotations

from ipaddress import ip_address

from pydantic import BaseModel


class Interface(BaseModel):
    name: str
    is_up: bool
    addresses: list[str]
    # As the driver says, which is no measure of capacity: a virtual one says 10,000 whatever the link does.
    reported_megabits: int = 0


class Gpu(BaseModel):
    name: str
    memory_bytes: int
    free_bytes: int


class GpuFacts(BaseModel):
    """NVIDIA's driver lists all of them, torch those it may use."""

    driver: str | None = None
    listed: list[Gpu] = []
    usable: int = 0
    cuda: str | None = None  # the version torch was built for; None: built for CPUs


class DataFacts(BaseModel):
    path: str
    fingerprint: str | None = None
    vocabulary: int = 0  # pieces
    sentence_tokens: float = 0.0  # mean of both sides of the training part
    problem: str = ""  # why it cannot be used
    hint: str = ""


class OtherProgram(BaseModel):
    """One that is not the run's."""

    name: str
    cores: float  # that it used while the host was looked at


class HostFacts(BaseModel):
    """One host. What takes time or company to find out has a default, and is filled in by who does."""

    name: str
    boot: str  # differs between machines, also between those that were cloned from one image
    versions: dict[str, str]
    data: DataFacts | None = None
    interfaces: list[Interface] = []
    disk_path: str
    disk_free_bytes: int
    run_problem: str = ""  # why no run can be there
    checkpoint_bytes: int = 0  # of this run, already on that disk
    memory_bytes: int
    memory_available_bytes: int
    cores: int
    core_numbers: list[int] = []  # that the asked process may use; some launchers give each rank its own
    load: float  # processes that want a core, mean over a minute
    programs: list[OtherProgram] = []  # the busiest, of those that this one can see
    gpus: GpuFacts = GpuFacts()
    peaks: list[float] = []  # FLOP/s of each device, or of each rank
    ranks: int = 1
    own_name_addresses: list[str] = []  # what its own name resolves to on it
    clock_offset_seconds: float | None = None  # ahead of the first host
    clock_error_seconds: float = 0.0  # half the round trip in which the clocks were read
    interface: str = ""  # by which it reaches the other hosts

    @property
    def addresses(self) -> list[str]:
        """By which others may reach it."""
        return [
            address
            for interface in self.interfaces
            if interface.is_up
            for address in interface.addresses
            if not is_local(address)
        ]


def is_local(address: str) -> bool:
    """Means something else on every machine, so that nobody else can use it."""
    parsed = ip_address(address)
    return parsed.is_loopback or parsed.is_link_local
