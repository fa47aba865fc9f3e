-- The first schema.  A migration that has shipped is never edited: a change
-- is a new file.  Times end in _ms or _s: UTC since 1970.  `options` holds
-- what the tables of common/registry (option.h) allow, as far as it is set.

PRAGMA application_id = 0x6d757374;

CREATE TABLE cluster (
	id		INTEGER PRIMARY KEY CHECK (id = 1),
	uuid		TEXT NOT NULL,
	name		TEXT NOT NULL,
	revision	INTEGER NOT NULL,
	next_serial	INTEGER NOT NULL,
	created_ms	INTEGER NOT NULL
) STRICT;

CREATE TABLE changes (
	revision	INTEGER PRIMARY KEY,
	at_ms		INTEGER NOT NULL,
	who		TEXT NOT NULL,
	what		TEXT NOT NULL
) STRICT;

CREATE TABLE settings (
	key		TEXT PRIMARY KEY,
	value		TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE roles (
	name		TEXT PRIMARY KEY,
	predefined	INTEGER NOT NULL DEFAULT 0 CHECK (predefined IN (0, 1)),
	options		TEXT NOT NULL DEFAULT '{}'
) STRICT, WITHOUT ROWID;

INSERT INTO roles (name, predefined, options) VALUES
	('master', 1, '{}'),
	('worker_http', 1, '{"port":"80"}'),
	('worker_mysql', 1, '{"health":"mysql","port":"3306"}'),
	('storage', 1, '{}');

-- AUTOINCREMENT here and below: an id is never given twice, so that nothing
-- passes from a removed node, operator or site to a later one.
CREATE TABLE nodes (
	id		INTEGER PRIMARY KEY AUTOINCREMENT,
	uuid		TEXT NOT NULL UNIQUE,
	name		TEXT NOT NULL UNIQUE,
	addr		TEXT NOT NULL,
	agent_port	INTEGER NOT NULL CHECK (agent_port BETWEEN 0 AND 65535),
	key		BLOB UNIQUE CHECK (length(key) = 32),
	state		TEXT NOT NULL CHECK (state IN ('up', 'drain', 'maintenance')),
	state_since_ms	INTEGER NOT NULL,
	options		TEXT NOT NULL DEFAULT '{}'
) STRICT;

CREATE UNIQUE INDEX nodes_agent ON nodes (addr, agent_port)
	WHERE agent_port > 0;

CREATE TABLE node_roles (
	node_id		INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
	role		TEXT NOT NULL REFERENCES roles,
	port		INTEGER NOT NULL DEFAULT 0
			CHECK (port BETWEEN 0 AND 65535),
	PRIMARY KEY (node_id, role)
) STRICT, WITHOUT ROWID;

CREATE INDEX node_roles_role ON node_roles (role);

CREATE TABLE sights (
	node_id		INTEGER PRIMARY KEY REFERENCES nodes ON DELETE CASCADE,
	at_ms		INTEGER NOT NULL,
	skew_ms		INTEGER NOT NULL,
	version		TEXT NOT NULL
) STRICT;

CREATE TABLE operators (
	id		INTEGER PRIMARY KEY AUTOINCREMENT,
	name		TEXT NOT NULL UNIQUE,
	grants		TEXT NOT NULL,
	until_s		INTEGER NOT NULL,
	key		BLOB UNIQUE CHECK (length(key) = 32),
	created_ms	INTEGER NOT NULL
) STRICT;

-- Every certificate issued and not yet forgotten.  Without a holder: the
-- holder was removed, and it is revoked.
CREATE TABLE certs (
	serial		INTEGER PRIMARY KEY,
	node_id		INTEGER REFERENCES nodes ON DELETE SET NULL,
	operator_id	INTEGER REFERENCES operators ON DELETE SET NULL,
	not_after_s	INTEGER NOT NULL,
	revoked_ms	INTEGER,
	CHECK (node_id IS NULL OR operator_id IS NULL),
	CHECK (node_id IS NOT NULL OR operator_id IS NOT NULL
		OR revoked_ms IS NOT NULL)
) STRICT;

CREATE INDEX certs_node ON certs (node_id) WHERE node_id IS NOT NULL;
CREATE INDEX certs_operator ON certs (operator_id)
	WHERE operator_id IS NOT NULL;
CREATE INDEX certs_revoked ON certs (not_after_s) WHERE revoked_ms IS NOT NULL;

CREATE TABLE tokens (
	id		BLOB PRIMARY KEY CHECK (length(id) = 8),
	psk		BLOB NOT NULL CHECK (length(psk) = 32),
	kind		TEXT NOT NULL CHECK (kind IN ('node', 'operator')),
	name		TEXT NOT NULL,
	from_cidr	TEXT NOT NULL,
	uses		INTEGER NOT NULL,
	used		INTEGER NOT NULL DEFAULT 0,
	created_ms	INTEGER NOT NULL,
	expires_ms	INTEGER NOT NULL,
	approve		INTEGER NOT NULL CHECK (approve IN (0, 1)),
	CHECK (used BETWEEN 0 AND uses)
) STRICT, WITHOUT ROWID;

CREATE TABLE token_roles (
	token_id	BLOB NOT NULL REFERENCES tokens ON DELETE CASCADE,
	role		TEXT NOT NULL REFERENCES roles,
	PRIMARY KEY (token_id, role)
) STRICT, WITHOUT ROWID;

CREATE INDEX token_roles_role ON token_roles (role);

-- Who joined with a token: the same key gets the same answer again, unless
-- what it joined as is gone.
CREATE TABLE token_uses (
	token_id	BLOB NOT NULL REFERENCES tokens ON DELETE CASCADE,
	key		BLOB NOT NULL CHECK (length(key) = 32),
	at_ms		INTEGER NOT NULL,
	node_id		INTEGER REFERENCES nodes ON DELETE SET NULL,
	operator_id	INTEGER REFERENCES operators ON DELETE SET NULL,
	PRIMARY KEY (token_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX token_uses_node ON token_uses (node_id);
CREATE INDEX token_uses_operator ON token_uses (operator_id);

CREATE TABLE pending (
	name		TEXT PRIMARY KEY,
	key		BLOB NOT NULL UNIQUE CHECK (length(key) = 32),
	addr		TEXT NOT NULL,
	port		INTEGER NOT NULL,
	token_id	BLOB NOT NULL REFERENCES tokens ON DELETE CASCADE,
	at_ms		INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX pending_token ON pending (token_id);

CREATE TABLE conflicts (
	name		TEXT NOT NULL,
	key		BLOB NOT NULL,
	addr		TEXT NOT NULL,
	port		INTEGER NOT NULL,
	at_ms		INTEGER NOT NULL,
	PRIMARY KEY (name, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE sites (
	id		INTEGER PRIMARY KEY AUTOINCREMENT,
	name		TEXT NOT NULL UNIQUE,
	enabled		INTEGER NOT NULL CHECK (enabled IN (0, 1)),
	role		TEXT NOT NULL REFERENCES roles,
	options		TEXT NOT NULL DEFAULT '{}'
) STRICT;

CREATE INDEX sites_role ON sites (role);

-- Main names and aliases in one table: a host belongs to one site at most.
CREATE TABLE hosts (
	host		TEXT PRIMARY KEY,
	site_id		INTEGER NOT NULL REFERENCES sites ON DELETE CASCADE,
	alias		INTEGER NOT NULL CHECK (alias IN (0, 1))
) STRICT, WITHOUT ROWID;

CREATE INDEX hosts_site ON hosts (site_id, alias, host);
