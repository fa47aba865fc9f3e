"""A real Apache for tests: one site, its home, .htaccess in force."""

import os
from pathlib import Path

import pytest

import muster

PROGRAM = "/usr/sbin/apache2"
MODULES = Path("/usr/lib/apache2/modules")
LOADED = ("mpm_event authn_core authz_core authz_host authz_user auth_basic "
          "authn_file access_compat alias autoindex dir env expires headers "
          "mime negotiation rewrite setenvif").split()

CONFIG = """
ServerRoot {run}
PidFile {run}/pid
DefaultRuntimeDir {run}
Listen {address}:{port}
ServerName a
ServerSignature Off
ErrorLog {run}/error.log
User www-data
Group www-data
StartServers 1
ThreadsPerChild 8
MinSpareThreads 8
MaxSpareThreads 16
MaxRequestWorkers 16
KeepAlive On
TypesConfig /etc/mime.types
DocumentRoot {home}
DirectoryIndex index.html index.cgi index.pl index.php index.xhtml index.htm
<Directory {home}>
    Options Indexes FollowSymLinks
    AllowOverride All
    Require all granted
</Directory>
<FilesMatch "^\\.ht">
    Require all denied
</FilesMatch>
"""


def start(cluster, home, address, port):
    """Runs until the cluster is taken down."""
    if not Path(PROGRAM).exists() or os.geteuid() != 0:
        pytest.skip("Apache is not here, or may not start")
    run = cluster.tmp / "apache"
    run.mkdir()
    load = "".join(f"LoadModule {m}_module {MODULES}/mod_{m}.so\n"
                   for m in LOADED if (MODULES / f"mod_{m}.so").exists())
    config = run / "httpd.conf"
    config.write_text(load + CONFIG.format(run=run, address=address,
                                           port=port, home=home))
    muster.run(PROGRAM, "-f", config, "-t")
    return muster.subprocess.Popen(
        [PROGRAM, "-f", str(config), "-D", "FOREGROUND"],
        stdin=muster.subprocess.DEVNULL, stderr=muster.subprocess.DEVNULL)


def stop(process):
    process.terminate()
    process.wait(timeout=muster.PATIENCE_S)
