"""An ssh server of our own on loopback addresses, for the peers that need
one: own keys, own configuration, never the system's."""

import contextlib
import getpass
import os
import shutil
import subprocess
from pathlib import Path

from measure import muster

LISTEN_MAX = 16  # sshd's own limit of addresses (MAX_LISTEN_SOCKS)


class Sshd:
    """Serves on every address given.  client_config is for ssh -F;
    masters() is the same with persistent connections (ControlMaster)."""

    def __init__(self, tmp, addresses, port=2222):
        self.tmp = Path(tmp)
        self.addresses, self.port = addresses, port
        self.servers = []
        self.made_run = False
        # A root sshd insists on this directory.
        if os.geteuid() == 0 and not os.path.isdir("/run/sshd"):
            os.mkdir("/run/sshd", 0o755)
            self.made_run = True
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "",
                            "-f", self.tmp / name], check=True)
        shutil.copy(self.tmp / "user.pub", self.tmp / "authorized")
        self.client_config = self._client("client")
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def masters(self):
        return self._client("masters", f"""
ControlMaster auto
ControlPersist yes
ControlPath {self.tmp}/cm-%h
""")

    def _start(self):
        program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
        for i in range(0, len(self.addresses), LISTEN_MAX):
            config = self.tmp / f"sshd{i}"
            listen = "\n".join(f"ListenAddress {a}" for a in
                               self.addresses[i:i + LISTEN_MAX])
            config.write_text(f"""{listen}
Port {self.port}
HostKey {self.tmp}/host
AuthorizedKeysFile {self.tmp}/authorized
PidFile none
StrictModes no
UsePAM no
UseDNS no
PermitRootLogin prohibit-password
PasswordAuthentication no
MaxStartups 1000
MaxSessions 1000
LogLevel ERROR
""")
            self.servers.append(subprocess.Popen(
                [program, "-D", "-f", config], stdin=subprocess.DEVNULL,
                stderr=open(self.tmp / f"sshd{i}.log", "wb")))
        for address in self.addresses:
            muster.wait_for(lambda: self._answers(address), 20,
                            f"sshd on {address}")

    def _answers(self, address):
        import socket
        with contextlib.suppress(OSError), \
                socket.create_connection((address, self.port), 1):
            return True
        return False

    def _client(self, name, more=""):
        path = self.tmp / name
        path.write_text(f"""Host *
Port {self.port}
User {getpass.getuser()}
IdentityFile {self.tmp}/user
IdentitiesOnly yes
BatchMode yes
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
GlobalKnownHostsFile /dev/null
LogLevel ERROR
{more}""")
        return path

    def close(self):
        masters = self.tmp / "masters"
        for control in self.tmp.glob("cm-*"):
            subprocess.run(["ssh", "-F", masters, "-O", "exit",
                            control.name[3:]], stderr=subprocess.DEVNULL,
                           check=False)
        for server in self.servers:
            server.terminate()
            server.wait()
        if self.made_run:
            with contextlib.suppress(OSError):
                os.rmdir("/run/sshd")
