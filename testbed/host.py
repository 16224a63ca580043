"""One host: network, process, mount, host name and IPC namespaces that live as long as their first process.

The namespaces have no names on the machine (no /run/netns, no /etc/netns). The first process waits on a pipe
from its owner: when the owner closes it or is killed, that process ends, and the kernel ends everything in
its process namespace and then removes the other namespaces.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1  # of prctl(2)
_END_SECONDS = 10.0

# $0: host name, $1: content of /etc/hosts. The first line still sees the machine's /proc, so it gets the
# process id as the owner sees it. Orphans of the host stay as zombies until it ends.
_FIRST_PROCESS = """
read -r pid rest < /proc/self/stat
set -e
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /dev/shm
echo "$0" > /proc/sys/kernel/hostname
file=$(mktemp)
echo "$1" > "$file"
chmod 644 "$file"
mount --bind "$file" /etc/hosts
rm "$file"
ip link set lo up
# Debian's default, whatever this machine uses
echo cubic > /proc/sys/net/ipv4/tcp_congestion_control || true
echo "$pid"
exec cat > /dev/null
"""

# $0: first process, $1: folder, $2: cgroup to join, or empty. No fork, so the caller's child is the command.
_ENTER = """
pid=$0 folder=$1
[ -z "$2" ] || echo 0 > "$2"
shift 2
exec nsenter --target "$pid" --net --uts --ipc --mount -- sh -c 'cd "$0" && exec "$@"' "$folder" "$@"
"""


class TestbedError(Exception):
    """The test bed cannot do what was requested on this machine."""

    __test__ = False  # not a test, despite its name


class Host:
    """A host; it and everything on it end with `end()` or with the process that created it."""

    def __init__(self, name: str, hosts_file: str, cores: Sequence[int] = ()) -> None:
        self.name = name
        self._pin = ["taskset", "--cpu-list", ",".join(map(str, cores))] if cores else []
        self.cgroup = ""  # the cgroup.procs file that new commands join
        self._commands: list[subprocess.Popen[str]] = []
        self._first = subprocess.Popen(
            ["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child"]
            + ["sh", "-c", _FIRST_PROCESS, name, hosts_file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the owner
        )
        assert self._first.stdout and self._first.stderr
        pid = self._first.stdout.readline()
        if not pid:
            error = self._first.stderr.read().strip()
            self.end()
            raise TestbedError(f"cannot create namespaces for host {name}: {error}")
        self.pid = int(pid)

    def popen(
        self, command: Sequence[str | Path], env: Mapping[str, str] | None, cwd: Path | str, **options: Any
    ) -> subprocess.Popen[str]:
        """Start a command on the host, as this process's own child."""
        enter = [*self._pin, "sh", "-c", _ENTER, str(self.pid), str(cwd), self.cgroup, *map(str, command)]
        options = {"text": True, "start_new_session": True} | options
        with _children_in(self.pid):
            process = subprocess.Popen(enter, env=os.environ | dict(env or {}), **options)
        self._commands.append(process)
        return process

    def network(self, *command: str, ok: bool = True) -> bool:
        """Run `ip` or `tc` in the host's network; returns whether it succeeded."""
        done = subprocess.run(
            ["nsenter", f"--net=/proc/{self.pid}/ns/net", *command], capture_output=True, text=True
        )
        if ok and done.returncode:
            raise TestbedError(f"{' '.join(command)} on {self.name}: {done.stderr.strip()}")
        return done.returncode == 0

    def processes(self) -> list[int]:
        """The ids of the host's processes as its owner sees them, without the first process and zombies."""
        namespace = os.readlink(f"/proc/{self.pid}/ns/pid")
        mine = [pid for pid in _all_processes() if pid != self.pid and _namespace(pid) == namespace]
        return [pid for pid in mine if not _is_zombie(pid)]

    def end(self) -> None:
        assert self._first.stdin and self._first.stdout and self._first.stderr
        self._first.stdin.close()
        # The kernel has killed the commands; the first process disappears only after they were waited for.
        for command in self._commands:
            command.wait(_END_SECONDS)
        try:
            self._first.wait(_END_SECONDS)
        finally:
            self._first.kill()
            self._first.stdout.close()
            self._first.stderr.close()


def become(pid: int) -> None:
    """Take this process to the host whose first process this is: for a fork that has its imports already.

    Only a new process can be in the host's process namespace, so this returns in a child. The caller's own
    process waits for it and ends as it does; where that one is killed, the child is, too. It must have no
    threads.
    """
    folder = os.getcwd()
    for name in ("pid", "net", "uts", "ipc", "mnt"):  # mnt last: the paths are those of this machine's /proc
        _set_namespace(f"/proc/{pid}/ns/{name}")
    os.chdir(folder)
    if child := os.fork():
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code < 0:
            os.kill(os.getpid(), -code)
        os._exit(code)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@contextmanager
def _children_in(pid: int) -> Iterator[None]:
    """In the block, this thread's children start in the process namespace of `pid` but stay our children."""
    _set_namespace(f"/proc/{pid}/ns/pid")
    try:
        yield
    finally:
        _set_namespace("/proc/self/ns/pid")


def _set_namespace(path: str) -> None:
    namespace = os.open(path, os.O_RDONLY)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(namespace, 0):  # of whatever kind it is
            raise TestbedError(f"setns {path}: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(namespace)


def _all_processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _namespace(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:  # it has ended
        return None


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:  # it has ended
        return True
