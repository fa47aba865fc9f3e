"""Real web servers for tests: Apache (prefork) and nginx, each in a folder of
its own that its unprivileged processes can read."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

import muster

APACHE = """
ServerRoot {root}
PidFile {root}/httpd.pid
DefaultRuntimeDir {root}
Listen {address}:{port}
ServerName {address}
User www-data
Group www-data
ErrorLog {root}/error.log
LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
{modules}
TypesConfig /etc/mime.types
StartServers 4
MinSpareServers 2
MaxRequestWorkers {workers}
KeepAlive On
KeepAliveTimeout 5
MaxKeepAliveRequests 0
DocumentRoot {docs}
<Directory {docs}>
    Options FollowSymLinks ExecCGI
    AllowOverride All
    Require all granted
</Directory>
ScriptAlias /cgi/ {root}/cgi/
<Directory {root}/cgi>
    Options ExecCGI
    Require all granted
</Directory>
{more}
"""

NGINX = """
daemon off;
worker_processes 1;
pid {root}/nginx.pid;
error_log {root}/error.log;
events {{ worker_connections 4096; }}
http {{
    include /etc/nginx/mime.types;
    access_log off;
    client_body_temp_path {root}/body;
    proxy_temp_path {root}/proxy;
    fastcgi_temp_path {root}/fastcgi;
    uwsgi_temp_path {root}/uwsgi;
    scgi_temp_path {root}/scgi;
    keepalive_requests 1000000;
    server {{
        listen {address}:{port} backlog=1024;
        root {docs};
        {more}
    }}
}}
"""

# One CGI program that says what it was asked.
ECHO = """#!/bin/sh
printf 'Content-Type: text/plain\\r\\n\\r\\n'
printf '%s %s\\n' "$REQUEST_METHOD" "$REQUEST_URI"
env | grep -E '^(HTTP_|CONTENT_)' | sort
printf 'body '
cat | md5sum
"""


class WebServer:
    """A server in the foreground, below a folder that anybody may read."""

    def __init__(self, address, port=9000, docs=None):
        self.address, self.port = address, port
        self.root = Path(tempfile.mkdtemp(prefix="muster-web-"))
        self.root.chmod(0o755)
        self.docs = Path(docs) if docs else self.root / "docs"
        self.docs.mkdir(exist_ok=True)
        self.proc = None

    def argv(self):
        raise NotImplementedError

    def start(self):
        self.proc = subprocess.Popen(
            self.argv(), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=muster.clean_env(), start_new_session=True)

        def listens():
            assert self.proc.poll() is None, self.log
            try:
                socket.create_connection((self.address, self.port)).close()
                return True
            except OSError:
                return False
        muster.wait_for(listens, what=f"{self.argv()[0]} to listen")
        return self

    @property
    def log(self):
        path = self.root / "error.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def signal_all(self, number):
        """To the server and all its processes."""
        os.killpg(self.proc.pid, number)

    def kill(self):
        """All its processes, at once."""
        if self.proc is not None and self.proc.poll() is None:
            self.signal_all(signal.SIGKILL)
            self.proc.wait()
        self.proc = None

    def close(self):
        self.kill()
        shutil.rmtree(self.root, ignore_errors=True)


class Apache(WebServer):
    MODULES = ("authz_core", "authz_host", "authn_core", "authn_file",
               "authz_user", "auth_basic", "mime", "dir", "alias", "cgi",
               "headers", "rewrite", "setenvif", "expires", "deflate",
               "filter", "env", "autoindex", "status")

    def __init__(self, address, port=9000, docs=None, workers=64, more=""):
        super().__init__(address, port, docs)
        if shutil.which("apache2") is None:
            pytest.skip("apache2 is not installed")
        (self.root / "cgi").mkdir()
        self.cgi("echo", ECHO)
        modules = "\n".join(
            f"LoadModule {m}_module /usr/lib/apache2/modules/mod_{m}.so"
            for m in self.MODULES)
        (self.root / "httpd.conf").write_text(APACHE.format(
            root=self.root, address=address, port=port, docs=self.docs,
            workers=workers, modules=modules, more=more))
        self.start()

    def cgi(self, name, text):
        script = self.root / "cgi" / name
        script.write_text(text)
        script.chmod(0o755)

    def argv(self):
        return ["apache2", "-f", str(self.root / "httpd.conf"),
                "-DFOREGROUND"]


class Nginx(WebServer):
    def __init__(self, address, port=9000, docs=None, more=""):
        super().__init__(address, port, docs)
        if shutil.which("nginx") is None:
            pytest.skip("nginx is not installed")
        (self.root / "nginx.conf").write_text(NGINX.format(
            root=self.root, address=address, port=port, docs=self.docs,
            more=more))
        self.start()

    def argv(self):
        return ["nginx", "-c", str(self.root / "nginx.conf")]
