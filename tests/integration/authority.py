"""A certificate authority for tests, by the openssl command: certificates of
any time, kind and fault, their keys, OCSP responses."""

import datetime
from pathlib import Path

import muster

CONFIG = """
[ca]
default_ca = ours
[ours]
database = {dir}/index.txt
new_certs_dir = {dir}
certificate = {cert}
private_key = {key}
policy = anything
email_in_dn = no
rand_serial = yes
copy_extensions = none
unique_subject = no
[anything]
commonName = supplied
"""


def openssl(*args, **options):
    return muster.run("openssl", *args, **options)


def stamp(days):
    """So many days from now, as openssl ca takes it."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return (now + datetime.timedelta(days=days)).strftime("%Y%m%d%H%M%SZ")


class Issued:
    """Paths: cert, key, full (cert and chain); serial of the certificate."""

    def __init__(self, stem):
        self.cert, self.key = Path(f"{stem}.crt"), Path(f"{stem}.key")
        self.full = Path(f"{stem}.full")

    @property
    def serial(self):
        out = openssl("x509", "-in", self.cert, "-noout", "-serial").stdout
        return out.strip().partition("=")[2]

    @property
    def spki(self):
        """What its key's file is called."""
        der = openssl("pkey", "-in", self.key, "-pubout", "-outform",
                      "DER").raw_stdout
        return openssl("dgst", "-sha256", "-r",
                       stdin=der).stdout.split()[0]


def make_key(path, kind="ecdsa"):
    """kind: ecdsa, rsa, rsa1024, ed25519, or the name of a curve."""
    if kind.startswith("rsa"):
        what = ["-algorithm", "RSA", "-pkeyopt",
                f"rsa_keygen_bits:{kind[3:] or 2048}"]
    elif kind == "ed25519":
        what = ["-algorithm", "ED25519"]
    else:
        curve = "P-256" if kind == "ecdsa" else kind
        what = ["-algorithm", "EC", "-pkeyopt",
                f"ec_paramgen_curve:{curve}"]
    openssl("genpkey", *what, "-out", path)


class Authority:
    """Signs; parent: who signed it itself, else it is a root."""

    def __init__(self, tmp, name="Test CA", parent=None):
        self.dir = Path(tmp) / name.replace(" ", "-").lower()
        self.dir.mkdir(mode=0o700)
        self.name, self.parent = name, parent
        self.cert, self.key = self.dir / "ca.crt", self.dir / "ca.key"
        self.n = 0
        (self.dir / "index.txt").touch()
        self.config = self.dir / "ca.conf"
        self.config.write_text(CONFIG.format(dir=self.dir, cert=self.cert,
                                             key=self.key))
        if parent is None:
            make_key(self.key)
            openssl("req", "-x509", "-new", "-key", self.key, "-days", "3650",
                    "-subj", f"/CN={name}", "-out", self.cert)
        else:
            made = parent.issue(name, names=(), days=3000,
                                extra="basicConstraints=critical,CA:true\n")
            made.cert.rename(self.cert)
            made.key.rename(self.key)

    @property
    def chain(self):
        """Its certificate and those above, but for the root."""
        if self.parent is None:
            return ""
        return self.cert.read_text() + self.parent.chain

    def issue(self, name, names=None, kind="ecdsa", days=90, since=-1,
              digest="sha256", extra="", key=None):
        """names: of hosts (default: the name alone)."""
        self.n += 1
        made = Issued(self.dir / f"{self.n}")
        if key is None:
            make_key(made.key, kind)
        else:
            made.key.write_bytes(Path(key).read_bytes())
        names = [name] if names is None else names
        ext = self.dir / f"{self.n}.ext"
        ext.write_text(extra + "".join(
            f"subjectAltName={','.join('DNS:' + n for n in names)}\n"
            if names else ""))
        request = self.dir / f"{self.n}.csr"
        openssl("req", "-new", "-key", made.key, "-subj", f"/CN={name}",
                "-out", request)
        openssl("ca", "-batch", "-notext", "-config", self.config, "-md",
                digest, "-startdate", stamp(since), "-enddate", stamp(days),
                "-extfile", ext, "-in", request, "-out", made.cert)
        made.full.write_text(made.cert.read_text() + self.chain)
        return made

    def staple(self, made, days=7):
        """An OCSP response that says it is good; a path."""
        request = made.cert.with_suffix(".req")
        out = made.cert.with_suffix(".ocsp")
        openssl("ocsp", "-issuer", self.cert, "-cert", made.cert, "-no_nonce",
                "-reqout", request)
        openssl("ocsp", "-index", self.dir / "index.txt", "-CA", self.cert,
                "-rsigner", self.cert, "-rkey", self.key, "-reqin", request,
                "-respout", out, "-ndays", days)
        return out


def self_signed(tmp, name, names=None, kind="ecdsa", days=90):
    made = Issued(Path(tmp) / f"self-{name}")
    make_key(made.key, kind)
    san = ",".join(f"DNS:{n}" for n in names or [name])
    openssl("req", "-x509", "-new", "-key", made.key, "-days", days, "-subj",
            f"/CN={name}", "-addext", f"subjectAltName={san}", "-out",
            made.cert)
    made.full.write_bytes(made.cert.read_bytes())
    return made
