"""A cable in userspace, for kernels without netem: two TAP devices and a queue with delay and loss.

    python cable.py HOST_PID SWITCH_PID PORT DELAY_SECONDS LOSS

Creates eth0 in the host's network and PORT in the switch's, prints "ready", and forwards frames until its
input is closed. A line of input sets a new delay. The devices disappear with the process. Delay and loss
apply only towards the host. It costs CPU time.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import select
import struct
import sys
import time
from collections import deque
from contextlib import suppress

_CLONE_NEWNET = 0x40000000  # of setns(2)
_TUNSETIFF, _TUNSETOFFLOAD = 0x400454CA, 0x400454D0
_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
_CHECKSUM_TSO4 = 0x01 | 0x02
_FRAME_BYTES = 70_000
_FRAMES_AT_ONCE = 64
_INPUT = 0


def main() -> None:
    host_pid, switch_pid, port = sys.argv[1:4]
    delay_seconds, loss = float(sys.argv[4]), float(sys.argv[5])
    # Whole 64 kB segments are cheap to forward, but losing one would lose a burst of 44 packets.
    whole_segments = not loss
    host = _tap(host_pid, "eth0", whole_segments)
    switch = _tap(switch_pid, port, whole_segments)
    print("ready", flush=True)
    _forward(host, switch, delay_seconds, loss)


def _tap(pid: str, name: str, whole_segments: bool) -> int:
    """Create a TAP device in the network of `pid`; this process stays in that network and needs no other."""
    namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(namespace)
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    flags = _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
    fcntl.ioctl(device, _TUNSETOFFLOAD, _CHECKSUM_TSO4 if whole_segments else 0)
    return device


def _forward(host: int, switch: int, delay_seconds: float, loss: float) -> None:
    under_way: deque[tuple[float, bytes]] = deque()  # due time at the host, and the frame
    while True:
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        readable = select.select([host, switch, _INPUT], [], [], wait)[0]
        if _INPUT in readable:
            if not (line := os.read(_INPUT, 100)):
                return
            delay_seconds = float(line.split()[-1])
        if host in readable:
            for frame in _frames(host):
                _write(switch, frame)
        if switch in readable:
            for frame in _frames(switch):
                if random.random() >= loss:
                    under_way.append((time.monotonic() + delay_seconds, frame))
        now = time.monotonic()
        while under_way and under_way[0][0] <= now:
            _write(host, under_way.popleft()[1])


def _frames(device: int) -> list[bytes]:
    frames: list[bytes] = []
    try:
        while len(frames) < _FRAMES_AT_ONCE:
            frames.append(os.read(device, _FRAME_BYTES))
    except OSError:  # no frame is waiting, or the device is down
        pass
    return frames


def _write(device: int, frame: bytes) -> None:
    with suppress(OSError):  # the device is down or its queue is full: the frame is lost, as on a wire
        os.write(device, frame)


if __name__ == "__main__":
    main()
