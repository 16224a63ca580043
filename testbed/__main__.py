"""A shell, or a command, on one host of a cluster."""

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

%h in a command is the host's number. Everything that runs on the hosts ends with the command."""


def main() -> int:
    parser = argparse.ArgumentParser(
        "python -m testbed",
        description="Several hosts (h0, h1, ...) on this machine; a shell or a command on them.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--hosts", type=int, default=2, help="how many (2)")
    parser.add_argument("--rate", help="of each link, each direction, such as 100mbit (no limit)")
    parser.add_argument("--delay-seconds", type=float, default=0.0, help="one way, from host to host (0)")
    parser.add_argument("--loss", type=float, default=0.0, help="share of packets lost, 0 to 1 (0)")
    parser.add_argument(
        "--slow", metavar="HOST:SHARE", action="append", default=[], help="limit to a share of a core"
    )
    parser.add_argument("--ssh", action="store_true", help="an ssh server on every host, open to the others")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--on", type=int, default=0, metavar="HOST", help="where the command runs (0)")
    where.add_argument("--all", action="store_true", help="the command runs on every host")
    parser.add_argument("command", nargs="*", help="what to run (a shell)")
    arguments = parser.parse_args()
    if reason := why_not() or (ssh.why_not() if arguments.ssh else None):
        print(f"no hosts here: {reason}", file=sys.stderr)
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
            # of our own process group, so that the terminal and its Ctrl-C are theirs too
            cluster.popen(host, [word.replace("%h", str(host)) for word in command], start_new_session=False)
            for host in hosts
        ]
        try:
            return max(abs(process.wait()) for process in started)
        except KeyboardInterrupt:
            return 130


if __name__ == "__main__":
    sys.exit(main())
