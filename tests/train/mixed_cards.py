"""A rank with a pretended GPU of its own kind: `python -m tests.train.mixed_cards ASKED CAPABILITY...`."""

import json
import sys
from dataclasses import replace
from unittest import mock

import torch

from dragoman.config import Train, Training
from dragoman.sync import topology
from dragoman.sync.topology import Placement
from dragoman.train import precision

if __name__ == "__main__":
    asked, *capabilities = sys.argv[1:]
    with topology.join(60) as placement:
        own = capabilities[placement.world.rank]
        fake = {
            "get_device_capability": lambda device: tuple(map(int, own.split("."))),
            "get_device_name": lambda device: f"GPU {own}",
        }
        world = replace(placement.world, device=torch.device("cuda", 0))
        settings = Training(train=Train(precision=asked))
        with mock.patch.multiple(torch.cuda, **fake):
            computing = precision.settle(settings, asked, Placement(world, placement.topology))
        print(json.dumps([computing.settings.train.precision, computing.words, computing.why]))
