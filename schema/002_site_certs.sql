-- TLS certificates of sites, at most one of each kind: which they are.  Chain
-- and staple are files in tls/ of the state directory, named by their
-- SHA-256, and so is the private key, named by that of its public key; no key
-- is ever here.  names, like a site's host names: split by one space.

CREATE TABLE site_certs (
	site_id		INTEGER NOT NULL REFERENCES sites ON DELETE CASCADE,
	kind		TEXT NOT NULL CHECK (kind IN ('rsa', 'ecdsa')),
	key		BLOB NOT NULL CHECK (length(key) = 32),
	chain		BLOB NOT NULL CHECK (length(chain) = 32),
	staple		BLOB CHECK (length(staple) = 32),
	not_before_s	INTEGER NOT NULL,
	not_after_s	INTEGER NOT NULL,
	staple_until_s	INTEGER NOT NULL DEFAULT 0,
	issuer		TEXT NOT NULL,
	names		TEXT NOT NULL,
	PRIMARY KEY (site_id, kind)
) STRICT, WITHOUT ROWID;
