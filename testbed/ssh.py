"""An ssh server on every host, set up so that `ssh h1` on h0 works.

Each host has its own /etc/ssh in memory with newly made keys; the machine's ssh files are not read or
written.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.host import Host, TestbedError

_WAIT_SECONDS = 10.0

# $0: the host's name. /run/sshd is where sshd confines its processes. Shells of sessions do not read the
# user's start-up file: it may take locks (pyenv's does), and a session that is cut off would leave them
# behind.
_MAKE = """
set -e
mount -t tmpfs -o mode=755 tmpfs /etc/ssh
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/sshd
ssh-keygen -q -t ed25519 -N '' -C "$0" -f /etc/ssh/host_key
ssh-keygen -q -t ed25519 -N '' -C "user@$0" -f /etc/ssh/user_key
[ ! -f ~/.bashrc ] || mount --bind /dev/null ~/.bashrc
"""
_SERVER = """
HostKey /etc/ssh/host_key
AuthorizedKeysFile /etc/ssh/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
PidFile none
MaxStartups 200
Subsystem sftp internal-sftp
"""
_CLIENT = """
IdentityFile /etc/ssh/user_key
IdentitiesOnly yes
GlobalKnownHostsFile /etc/ssh/known_hosts
UserKnownHostsFile none
StrictHostKeyChecking yes
LogLevel ERROR
"""


def serve(hosts: Sequence[Host], addresses: Sequence[str], environment: Mapping[str, str]) -> None:
    """Start the servers; the user of every host may log in on every host, and gets this environment."""
    folders = [Path(f"/proc/{host.pid}/root/etc/ssh") for host in hosts]
    for host in hosts:
        making = host.popen(["sh", "-c", _MAKE, host.name], None, "/", stderr=subprocess.PIPE)
        if error := making.communicate()[1]:
            raise TestbedError(f"cannot set up ssh on {host.name}: {error.strip()}")
    users = "".join((folder / "user_key.pub").read_text() for folder in folders)
    known = "".join(
        f"{host.name},{address} {(folder / 'host_key.pub').read_text()}"
        for host, address, folder in zip(hosts, addresses, folders, strict=True)
    )
    variables = " ".join(f"{name}={value}" for name, value in environment.items())
    server = f"{_SERVER}SetEnv {variables}\n" if variables else _SERVER
    for folder in folders:
        (folder / "sshd_config").write_text(server)
        (folder / "ssh_config").write_text(_CLIENT)
        (folder / "authorized_keys").write_text(users)
        (folder / "known_hosts").write_text(known)
    # sshd requires an absolute path: it starts itself again for every connection.
    for host in hosts:
        host.popen(["/usr/sbin/sshd", "-D", "-e"], None, "/", stderr=subprocess.DEVNULL)
    for host in hosts:
        _wait_for(host)


def _wait_for(host: Host) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not _listens(host):
        if time.monotonic() > deadline:
            raise TestbedError(f"sshd on {host.name} does not listen after {_WAIT_SECONDS:g} s")
        time.sleep(0.02)


def _listens(host: Host) -> bool:
    lines = Path(f"/proc/{host.pid}/net/tcp").read_text().splitlines()[1:]
    return any(line.split()[1].endswith(":0016") and line.split()[3] == "0A" for line in lines)


def why_not() -> str | None:
    """Why ssh servers cannot run here, or None."""
    if os.path.exists("/usr/sbin/sshd"):
        return None
    return "openssh-server not installed: run tools/install-debian-packages.sh"
