"""A model whose tensors are divided among the ranks of each host (`sync.mode = "sharded"`), by torch's FSDP2.

Every rank keeps an equal part of the rows of each weight, of its gradient and of its moments; each host has
all of them. A layer's weights are gathered from the host's ranks when the layer is computed, and freed again.
Functions that read a model or a tensor also take a whole one, and then hand it over as it is.

FSDP2 takes half a second to import. Only a run with shards imports it, so nothing here does at its top.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeGuard

import torch
from torch import Tensor, nn

from dragoman.errors import DragomanError
from dragoman.model import Transformer
from dragoman.sync.topology import Topology
from dragoman.sync.world import World

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor


def check(topology: Topology) -> None:
    """Raises if these hosts cannot have a part for each rank."""
    counts = [len(topology.ranks_of(host)) for host in range(len(topology.hosts))]
    if len(set(counts)) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in zip(topology.hosts, counts, strict=True))
        raise DragomanError(
            f"sync.mode=sharded needs the same number of ranks on every host, as each has the whole model "
            f"({listed})",
            hint="start as many ranks on each host, or use sync.mode=allreduce",
        )
    from torch.distributed.fsdp import FSDPModule

    if not hasattr(FSDPModule, "set_custom_all_gather"):
        raise DragomanError(
            f"sync.mode=sharded needs a newer torch than {torch.__version__}",
            hint="install a newer one (2.13 is tested), or use sync.mode=allreduce",
        )


def shard(model: Transformer, world: World, topology: Topology) -> None:
    """Leaves each rank its part of rank 0's model, on its device. Collective.

    Build the optimizer afterwards: the parameters are new ones. Layers move to the device one at a time, so
    the device never holds more than its part and one layer.
    """
    from torch.distributed.fsdp import fully_shard

    mesh = _mesh(world, topology)  # collective
    for module in (*model.layers, model):
        for parameter in module.parameters():
            if not _is_divided(parameter):
                parameter.data = parameter.data.to(world.device)
                world.broadcast_(parameter.data)  # collective
        fully_shard(module, mesh=mesh)


def _mesh(world: World, topology: Topology) -> DeviceMesh:
    """The ranks of this host or, with several hosts, one row of ranks for each. Collective."""
    from torch.distributed.device_mesh import DeviceMesh

    rows = [topology.ranks_of(host) for host in range(len(topology.hosts))]
    inside = [world.group(row) for row in rows][topology.rank_hosts[world.rank]]
    if len(rows) == 1:
        return DeviceMesh.from_group(inside, world.device.type)
    columns = list(zip(*rows, strict=True))
    across = [world.group(column) for column in columns]
    column = next(number for number, ranks in enumerate(columns) if world.rank in ranks)
    return DeviceMesh.from_group(
        [across[column], inside], world.device.type, mesh=rows, mesh_dim_names=("hosts", "ranks")
    )


def is_sharded(model: nn.Module) -> bool:
    loaded = sys.modules.get("torch.distributed.fsdp")
    return loaded is not None and isinstance(model, loaded.FSDPModule)


def _is_divided(tensor: Tensor) -> TypeGuard[DTensor]:
    loaded = sys.modules.get("torch.distributed.tensor")
    return loaded is not None and isinstance(tensor, loaded.DTensor)


def whole(tensor: Tensor) -> Tensor:
    """All rows of a tensor. Collective on the ranks of a host if the tensor is divided."""
    return tensor.full_tensor() if _is_divided(tensor) else tensor


def whole_model(model: Transformer) -> Transformer:
    """A model that every rank can use alone: a copy with all weights if they are divided. Collective then."""
    if not is_sharded(model):
        return model
    with torch.device("meta"):
        copy = Transformer(model.config, model.embedding.num_embeddings)
    weights = {name: whole(tensor.detach()) for name, tensor in model.state_dict().items()}  # collective
    copy.load_state_dict(weights, assign=True)
    return copy.train(model.training)


def fill(tensor: Tensor, content: Tensor | None, world: World) -> None:
    """Copies rank 0's content, or this rank's part of it, into the tensor; others give None. Collective."""
    part = tensor.to_local() if _is_divided(tensor) else tensor
    sent = tensor if part is tensor else torch.empty(tensor.shape, dtype=part.dtype, device=part.device)
    if world.is_main:
        assert content is not None
        sent.copy_(content)
    world.broadcast_(sent)  # collective
    if _is_divided(tensor):
        part.copy_(_own_rows(sent, tensor.device_mesh))


def _own_rows(tensor: Tensor, mesh: DeviceMesh) -> Tensor:
    """The rows that FSDP2 gives this rank: as torch.chunk divides them, with nothing for the last if few."""
    ranks = mesh.ndim - 1  # the dimension of the ranks of a host
    parts, number = tensor.chunk(mesh.size(ranks)), mesh.get_local_rank(ranks)
    return parts[number] if number < len(parts) else tensor[:0]
