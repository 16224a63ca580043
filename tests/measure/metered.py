"""Known traffic under a meter: `python -m tests.measure.metered ADDRESS SENT LOOPED` on a host of a test bed.

Sends so many bytes to a sink at the address and so many to itself; prints what the meter saw, in all.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time

from testbed.traffic import receive

PORT = 5000


def send(address: str, nbytes: int) -> None:
    with socket.create_connection((address, PORT)) as connection:
        connection.sendall(bytes(nbytes))
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)  # the sink has everything


def main(address: str, sent: int, looped: int) -> None:
    import numpy as np  # here, because a sink needs none of these, and torch takes seconds

    from dragoman.measure.meters import HostMeter
    from dragoman.measure.phases import Phases

    meter = HostMeter("eth0", Phases())
    time.sleep(0.3)  # its first reading
    own = threading.Thread(target=receive, args=(PORT,))
    own.start()
    send(address, sent)
    send("127.0.0.1", looped)
    own.join()
    time.sleep(2.2)  # two rows after the last byte
    rows = meter.take()["nics"]
    meter.close()
    totals = {}
    for number, name in enumerate(meter.interfaces):
        _, span, _, sent_bytes, received_bytes = rows[rows[:, 2] == number].T
        totals[name] = [float(np.dot(span, sent_bytes)), float(np.dot(span, received_bytes))]
    print(json.dumps(totals))


if __name__ == "__main__":
    if len(sys.argv) == 1:
        receive(PORT)
    else:
        main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
