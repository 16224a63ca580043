"""An ssh server on every host, and clients that are let in by name: `ssh h1` on h0 works as it is.

/etc/ssh is memory of the host's own, with keys made for it: nothing of the machine's is read or written.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from testbed.host import Host, TestbedError

_WAIT_SECONDS = 10.0

# $0: the host's name. /run/sshd is where sshd locks itself up. Shells of sessions read no start-up file of
# the user: it may take locks (pyenv's does), and a session that is cut off would leave them to the machine.
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


def serve(hosts: Sequence[Host], addresses: Sequence[str]) -> None:
    """Starts the servers; every host's user may enter every host."""
    folders = [Path(f"/proc/{host.pid}/root/etc/ssh") for host in hosts]
    for host in hosts:
        making = host.popen(["sh", "-c", _MAKE, host.name], None, "/", stderr=subprocess.PIPE)
        if error := making.communicate()[1]:
            raise TestbedError(f"no ssh on {host.name}: {error.strip()}")
    users = "".join((folder / "user_key.pub").read_text() for folder in folders)
    known = "".join(
        f"{host.name},{address} {(folder / 'host_key.pub').read_text()}"
        for host, address, folder in zip(hosts, addresses, folders, strict=True)
    )
    for folder in folders:
        (folder / "sshd_config").write_text(_SERVER)
        (folder / "ssh_config").write_text(_CLIENT)
        (folder / "authorized_keys").write_text(users)
        (folder / "known_hosts").write_text(known)
    # An absolute path is what sshd asks for: it starts itself again for every connection.
    for host in hosts:
        host.popen(["/usr/sbin/sshd", "-D", "-e"], None, "/", stderr=subprocess.DEVNULL)
    for host in hosts:
        _wait_for(host)


def _wait_for(host: Host) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not _listens(host):
        if time.monotonic() > deadline:
            raise TestbedError(f"sshd on {host.name} does not listen")
        time.sleep(0.02)


def _listens(host: Host) -> bool:
    lines = Path(f"/proc/{host.pid}/net/tcp").read_text().splitlines()[1:]
    return any(line.split()[1].endswith(":0016") and line.split()[3] == "0A" for line in lines)


def why_not() -> str | None:
    """Why there can be no ssh servers here, or None."""
    if os.path.exists("/usr/sbin/sshd"):
        return None
    return "openssh-server not installed: run tools/install-debian-packages.sh"
