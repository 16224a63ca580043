"""Runs a shell or a command on one or all hosts of a cluster."""

from __future__ import annotations

import argparse
import os
import sys

from testbed import Cluster, TestbedError, ssh, why_not

_EXAMPLE = """examples:
  python -m testbed --hosts 2 --rate 100mbit       a shell on h0
  python -m testbed --ssh                          the same with ssh: `dragoman train ... --hosts h0,h1`
  python -m testbed --all -- hostname              a command on every host at once
  python -m testbed --slow 1:0.3 --all -- torchrun --nnodes=2 --node-rank=%h --master-addr=h0 ...

%h in a command becomes the host's number. When the command ends, everything else on the hosts ends too."""


def main() -> int:
    parser = argparse.ArgumentParser(
        "python -m testbed",
        description="Several hosts (h0, h1, ...) on this machine; a shell or a command on them.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--hosts", type=int, default=2, help="number of hosts (2)")
    parser.add_argument("--rate", help="rate of each link in each direction, such as 100mbit (no limit)")
    parser.add_argument("--delay-seconds", type=float, default=0.0, help="one-way delay between hosts (0)")
    parser.add_argument("--loss", type=float, default=0.0, help="share of packets lost, 0 to 1 (0)")
    parser.add_argument(
        "--slow",
        metavar="HOST:SHARE",
        action="append",
        default=[],
        help="limit a host to a share of one core",
    )
    parser.add_argument(
        "--ssh", action="store_true", help="run an ssh server on every host, which accepts the other hosts"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--on", type=int, default=0, metavar="HOST", help="host that runs the command (0)")
    where.add_argument("--all", action="store_true", help="run the command on every host")
    parser.add_argument("command", nargs="*", help="what to run (a shell)")
    arguments = parser.parse_args()
    if reason := why_not() or (ssh.why_not() if arguments.ssh else None):
        print(f"cannot create hosts here: {reason}", file=sys.stderr)
        return 1
    try:
        return _run(arguments)
    except TestbedError as error:
        print(error, file=sys.stderr)
        return 1


def _run(arguments: argparse.Namespace) -> int:
    command = arguments.command or [os.environ.get("SHELL", "/bin/sh")]
    link = (arguments.rate, arguments.delay_seconds, arguments.loss)
    with Cluster(arguments.hosts, *link, with_ssh=arguments.ssh) as cluster:
        for limit in arguments.slow:
            host, _, share = limit.partition(":")
            cluster.slow(int(host), float(share))
        hosts = range(arguments.hosts) if arguments.all else [arguments.on]
        started = [
            # In our process group, so that the commands share the terminal and its Ctrl-C.
            cluster.popen(host, [word.replace("%h", str(host)) for word in command], start_new_session=False)
            for host in hosts
        ]
        try:
            return max(abs(process.wait()) for process in started)
        except KeyboardInterrupt:
            return 130


if __name__ == "__main__":
    sys.exit(main())
