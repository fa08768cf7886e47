/** One step of the schema. Its number and text never change once released: a database remembers their checksum. */
export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly statements: readonly string[];
}

/** Whether a row of approval_rules is about a request, as worker/store/people/approval_rules.ts says it. Both are names of tables or rows. */
function ruleIsAbout(rule: string, request: string): string {
  return `(${rule}.enterprise_id = ${request}.enterprise_id AND ${rule}.subject = ${request}.subject
    AND ${fits(`${rule}.name`, `${request}.connector_fqn`)} AND ${fits(`${rule}.action`, `${request}.operation`)}
    AND (${rule}.effects IS NULL OR ${request}.effect IS NULL
      OR instr(${rule}.effects, ',' || ${request}.effect || ',') > 0))`;
}

function fits(pattern: string, text: string): string {
  return `(CASE WHEN substr(${pattern}, -1) = '*'
    THEN substr(lower(${text}), 1, length(${pattern}) - 1) = lower(substr(${pattern}, 1, length(${pattern}) - 1))
    ELSE lower(${text}) = lower(${pattern}) END)`;
}

/** Ends what was allowed under other rules than with this one, or without it, and what people said of what waits. */
function endAbout(rule: string): string {
  return `
          UPDATE approvals SET ended = 1
            WHERE enterprise_id = ${rule}.enterprise_id AND state = 'approved' AND ${ruleIsAbout(rule, 'approvals')};
          UPDATE approval_grants SET ended = 1
            WHERE enterprise_id = ${rule}.enterprise_id AND revoked_at IS NULL AND ${ruleIsAbout(rule, 'approval_grants')};
          UPDATE approval_votes SET ended = 1 WHERE ended = 0 AND approval_id IN (SELECT id FROM approvals
            WHERE enterprise_id = ${rule}.enterprise_id AND state = 'pending' AND ${ruleIsAbout(rule, 'approvals')});`;
}

/**
 * Every row belongs to an enterprise or a user: `owner_id` is `usr_…` for personal rows and `ent_…` for the enterprise's.
 * Times are RFC 3339 texts, except for what is only compared: those are seconds since the epoch.
 */
export const MIGRATIONS: readonly Migration[] = [
  {
    number: 1,
    name: 'vault, bindings, sidecars, audit, browser sessions',
    statements: [
      `CREATE TABLE installation (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT`,
      // A batch that finds its reading of the world outdated breaks the CHECK, and so is rolled back as a whole.
      `CREATE TABLE write_guards (holds INTEGER NOT NULL CHECK (holds = 1)) STRICT`,
      `CREATE TABLE enterprises (
        id TEXT PRIMARY KEY, slug TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
        policy_version INTEGER NOT NULL DEFAULT 0, created_at TEXT NOT NULL) STRICT`,
      `CREATE TABLE users (
        id TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id), email TEXT,
        display_name TEXT NOT NULL, role TEXT NOT NULL CHECK (role IN ('admin', 'member')),
        policy_version INTEGER NOT NULL DEFAULT 0, created_at TEXT NOT NULL) STRICT`,
      `CREATE TABLE secrets (
        id TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id), owner_id TEXT NOT NULL,
        path TEXT NOT NULL, description TEXT, version INTEGER NOT NULL, sealed TEXT NOT NULL,
        created_at TEXT NOT NULL, updated_at TEXT NOT NULL, UNIQUE (owner_id, path)) STRICT`,
      `CREATE TABLE host_bindings (
        id TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id), owner_id TEXT NOT NULL,
        host TEXT NOT NULL, sentinel TEXT NOT NULL, record TEXT NOT NULL,
        created_at TEXT NOT NULL, updated_at TEXT NOT NULL, UNIQUE (owner_id, host, sentinel)) STRICT`,
      `CREATE TABLE binding_credentials (
        binding_id TEXT NOT NULL, owner_id TEXT NOT NULL, path TEXT NOT NULL, PRIMARY KEY (binding_id, path)) STRICT`,
      `CREATE INDEX binding_credentials_by_path ON binding_credentials (owner_id, path)`,
      `CREATE TABLE sidecars (
        id TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id),
        user_id TEXT NOT NULL REFERENCES users (id), name TEXT NOT NULL, signing_key TEXT NOT NULL,
        receiving_key TEXT NOT NULL, created_at TEXT NOT NULL, last_seen_at TEXT, revoked_at TEXT) STRICT`,
      `CREATE INDEX sidecars_by_user ON sidecars (user_id, id)`,
      `CREATE TABLE sidecar_calls (
        sidecar_id TEXT NOT NULL, jti TEXT NOT NULL, expires_at INTEGER NOT NULL, PRIMARY KEY (sidecar_id, jti)) STRICT`,
      `CREATE INDEX sidecar_calls_by_expiry ON sidecar_calls (expires_at)`,
      `CREATE TABLE audit_events (
        position INTEGER PRIMARY KEY AUTOINCREMENT, enterprise_id TEXT NOT NULL REFERENCES enterprises (id),
        writer TEXT NOT NULL, sequence INTEGER NOT NULL, id TEXT NOT NULL, type TEXT NOT NULL, time TEXT NOT NULL,
        sidecar_id TEXT, session_id TEXT, actor TEXT, host TEXT, connector TEXT, data TEXT NOT NULL,
        received_at TEXT NOT NULL, previous_hash TEXT NOT NULL, hash TEXT NOT NULL,
        UNIQUE (writer, sequence), UNIQUE (writer, id)) STRICT`,
      `CREATE INDEX audit_events_by_time ON audit_events (enterprise_id, time, position)`,
      `CREATE INDEX audit_events_by_type ON audit_events (enterprise_id, type, time, position)`,
      `CREATE INDEX audit_events_by_session ON audit_events (enterprise_id, session_id, time, position)`,
      `CREATE INDEX audit_events_by_host ON audit_events (enterprise_id, host, time, position)`,
      `CREATE TABLE audit_heads (
        writer TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL, sequence INTEGER NOT NULL, hash TEXT NOT NULL,
        seal TEXT NOT NULL) STRICT`,
      `CREATE TABLE sign_in_links (
        code_hash TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users (id), expires_at INTEGER NOT NULL) STRICT`,
      `CREATE TABLE browser_sessions (
        token_hash TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users (id), expires_at INTEGER NOT NULL) STRICT`,
    ],
  },
  {
    number: 2,
    name: 'fingerprints of secrets',
    statements: [
      // Null, or made with an earlier key, until somebody first compares: the value has to be opened to make one.
      `ALTER TABLE secrets ADD COLUMN fingerprint TEXT`,
      `CREATE INDEX secrets_by_fingerprint ON secrets (owner_id, fingerprint)`,
    ],
  },
  {
    number: 3,
    name: 'connectors and their credentials',
    statements: [
      `CREATE TABLE connectors (
        id TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id), owner_id TEXT NOT NULL,
        fqn TEXT NOT NULL, version TEXT NOT NULL, title TEXT NOT NULL, hosts TEXT NOT NULL,
        operation_count INTEGER NOT NULL, credential_kind TEXT NOT NULL, content_hash TEXT NOT NULL, spec TEXT NOT NULL,
        installed_by TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, UNIQUE (owner_id, fqn)) STRICT`,
      // What each version held, so that one version never means two things while the connector is installed.
      `CREATE TABLE connector_versions (
        connector_id TEXT NOT NULL, version TEXT NOT NULL, content_hash TEXT NOT NULL,
        PRIMARY KEY (connector_id, version)) STRICT`,
      // The value is in the vault, at this owner and path. `client`, `expires_at`, `renewable` and the lease are of oauth2.
      `CREATE TABLE connector_credentials (
        connector_id TEXT PRIMARY KEY, owner_id TEXT NOT NULL, path TEXT NOT NULL, kind TEXT NOT NULL,
        state TEXT NOT NULL, client TEXT, expires_at TEXT, renewable INTEGER NOT NULL, lease TEXT, lease_until INTEGER,
        updated_at TEXT NOT NULL, UNIQUE (owner_id, path)) STRICT`,
      `CREATE INDEX audit_events_by_connector ON audit_events (enterprise_id, connector, time, position)`,
    ],
  },
  {
    number: 4,
    name: 'approvals',
    statements: [
      `CREATE TABLE approvals (
        id TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id),
        user_id TEXT NOT NULL REFERENCES users (id), connector_id TEXT NOT NULL, connector_owner_id TEXT NOT NULL,
        connector_fqn TEXT NOT NULL, connector_version TEXT NOT NULL, operation TEXT NOT NULL, summary TEXT NOT NULL,
        fingerprint TEXT NOT NULL, sidecar_id TEXT, session_id TEXT, state TEXT NOT NULL, requested_at TEXT NOT NULL,
        expires_at TEXT NOT NULL, decided_by TEXT, decided_at TEXT, valid_until TEXT, used_by TEXT,
        used_at TEXT) STRICT`,
      `CREATE INDEX approvals_by_request ON approvals (user_id, connector_id, fingerprint, id)`,
      `CREATE INDEX approvals_by_enterprise ON approvals (enterprise_id, id)`,
      `CREATE INDEX approvals_open ON approvals (enterprise_id, state, expires_at)`,
    ],
  },
  {
    number: 5,
    name: 'authorisations of oauth2 credentials',
    statements: [
      // `id` is the hash of a browser's state, or random for a device; `sealed` is the PKCE verifier or the device's code.
      `CREATE TABLE oauth_flows (
        id TEXT PRIMARY KEY, connector_id TEXT NOT NULL, user_id TEXT NOT NULL REFERENCES users (id),
        grant_kind TEXT NOT NULL, redirect_uri TEXT, sealed TEXT NOT NULL, expires_at INTEGER NOT NULL,
        interval_seconds INTEGER NOT NULL, next_poll_at INTEGER NOT NULL) STRICT`,
      `CREATE INDEX oauth_flows_by_connector ON oauth_flows (connector_id, grant_kind)`,
    ],
  },
  {
    number: 6,
    name: 'sign-in',
    statements: [
      // A CHECK cannot be changed: a column with the wider one takes the place of the old one.
      `ALTER TABLE users ADD COLUMN wider_role TEXT NOT NULL DEFAULT 'member'
        CHECK (wider_role IN ('owner', 'admin', 'member'))`,
      `UPDATE users SET wider_role = role`,
      `UPDATE users SET wider_role = 'owner' WHERE id IN (SELECT value FROM installation WHERE name = 'local_user_id')`,
      `ALTER TABLE users DROP COLUMN role`,
      `ALTER TABLE users RENAME COLUMN wider_role TO role`,
      `ALTER TABLE users ADD COLUMN suspended_at TEXT`,
      // Lower-case, and null until somebody has shown that it is theirs: one account for each.
      `ALTER TABLE users ADD COLUMN verified_email TEXT`,
      `CREATE UNIQUE INDEX users_by_verified_email ON users (verified_email)`,
      // JSON lists. No domains: any. Providers null: every one that is set up.
      `ALTER TABLE enterprises ADD COLUMN allowed_domains TEXT NOT NULL DEFAULT '[]'`,
      `ALTER TABLE enterprises ADD COLUMN allowed_providers TEXT`,
      `ALTER TABLE enterprises ADD COLUMN billing_email TEXT`,
      `CREATE TABLE identities (
        provider TEXT NOT NULL, issuer TEXT NOT NULL, subject TEXT NOT NULL,
        user_id TEXT NOT NULL REFERENCES users (id), email TEXT NOT NULL, email_verified INTEGER NOT NULL,
        created_at TEXT NOT NULL, last_sign_in_at TEXT NOT NULL, PRIMARY KEY (provider, issuer, subject)) STRICT`,
      `CREATE INDEX identities_by_user ON identities (user_id)`,
      // What began at a provider's sign-in page: the hashes of the two cookies, and what the answer has to fit.
      `CREATE TABLE sign_in_flows (
        state_hash TEXT PRIMARY KEY, extra_hash TEXT NOT NULL, provider TEXT NOT NULL, redirect_url TEXT NOT NULL,
        return_to TEXT NOT NULL, expires_at INTEGER NOT NULL) STRICT`,
      `CREATE INDEX sign_in_flows_by_expiry ON sign_in_flows (expires_at)`,
      `CREATE TABLE passwords (email TEXT PRIMARY KEY, hash TEXT NOT NULL, updated_at TEXT NOT NULL) STRICT`,
      `CREATE TABLE signups (
        id_hash TEXT PRIMARY KEY, email TEXT NOT NULL, display_name TEXT NOT NULL, password_hash TEXT NOT NULL,
        code_hash TEXT NOT NULL, attempts_left INTEGER NOT NULL, expires_at INTEGER NOT NULL) STRICT`,
      `CREATE INDEX signups_by_expiry ON signups (expires_at)`,
      `CREATE TABLE throttles (key TEXT PRIMARY KEY, count INTEGER NOT NULL, window_ends INTEGER NOT NULL) STRICT`,
      `CREATE INDEX throttles_by_end ON throttles (window_ends)`,
      // A session lasts for a working day: those of before had nothing to list them by, and their browsers sign in anew.
      `DROP TABLE browser_sessions`,
      `CREATE TABLE browser_sessions (
        id TEXT PRIMARY KEY, token_hash TEXT NOT NULL UNIQUE, user_id TEXT NOT NULL REFERENCES users (id),
        provider TEXT NOT NULL, client TEXT NOT NULL, created_at TEXT NOT NULL, last_seen_at TEXT NOT NULL,
        expires_at INTEGER NOT NULL) STRICT`,
      `CREATE INDEX browser_sessions_by_user ON browser_sessions (user_id)`,
    ],
  },
  {
    number: 7,
    name: 'tokens',
    statements: [
      // `verifies_until`: null for the key that signs, of which there is one.
      `CREATE TABLE signing_keys (
        id TEXT PRIMARY KEY, public_key TEXT NOT NULL, sealed_private_key TEXT NOT NULL, created_at TEXT NOT NULL,
        verifies_until INTEGER) STRICT`,
      `CREATE UNIQUE INDEX signing_keys_one_signs ON signing_keys ((verifies_until IS NULL)) WHERE verifies_until IS NULL`,
      // The sign-in of a program: each of its refresh tokens is used once, and all of them end together.
      `CREATE TABLE token_families (
        id TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users (id), client TEXT NOT NULL, created_at TEXT NOT NULL,
        last_used_at TEXT NOT NULL, expires_at INTEGER NOT NULL, revoked_at TEXT) STRICT`,
      `CREATE INDEX token_families_by_user ON token_families (user_id, id)`,
      `CREATE TABLE refresh_tokens (
        token_hash TEXT PRIMARY KEY, family_id TEXT NOT NULL, expires_at INTEGER NOT NULL, used_at TEXT) STRICT`,
      `CREATE INDEX refresh_tokens_by_family ON refresh_tokens (family_id)`,
      `CREATE TABLE personal_tokens (
        id TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users (id), name TEXT NOT NULL, token_hash TEXT NOT NULL UNIQUE,
        scopes TEXT NOT NULL, created_at TEXT NOT NULL, expires_at TEXT NOT NULL, last_used_at TEXT,
        revoked_at TEXT) STRICT`,
      `CREATE INDEX personal_tokens_by_user ON personal_tokens (user_id, id)`,
      // `user_code_mac`: keyed, for a code that a person can type can be guessed from a plain hash.
      `CREATE TABLE device_codes (
        code_hash TEXT PRIMARY KEY, user_code_mac TEXT NOT NULL UNIQUE, client TEXT NOT NULL, address TEXT NOT NULL,
        created_at TEXT NOT NULL, expires_at INTEGER NOT NULL, interval_seconds INTEGER NOT NULL,
        next_poll_at INTEGER NOT NULL, state TEXT NOT NULL, user_id TEXT REFERENCES users (id)) STRICT`,
      `CREATE INDEX device_codes_by_expiry ON device_codes (expires_at)`,
    ],
  },
  {
    number: 8,
    name: 'sign-in of enterprises',
    statements: [
      `ALTER TABLE enterprises ADD COLUMN sso_required INTEGER NOT NULL DEFAULT 0 CHECK (sso_required IN (0, 1))`,
      `CREATE TABLE enterprise_oidc (
        enterprise_id TEXT PRIMARY KEY REFERENCES enterprises (id), issuer TEXT NOT NULL, client_id TEXT NOT NULL,
        sealed_secret TEXT NOT NULL, updated_at TEXT NOT NULL) STRICT`,
      // A domain is one enterprise's, once it has shown that it is.
      `CREATE TABLE enterprise_domains (
        domain TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id), proven_at TEXT NOT NULL) STRICT`,
      `CREATE INDEX enterprise_domains_by_enterprise ON enterprise_domains (enterprise_id)`,
    ],
  },
  {
    number: 9,
    name: 'how much was recorded for an enterprise',
    statements: [`CREATE INDEX audit_heads_by_enterprise ON audit_heads (enterprise_id, sequence)`],
  },
  {
    number: 10,
    name: 'how programs were signed in',
    statements: [
      // Empty: nobody noted it, and no rule that names the ways to sign in allows it.
      `ALTER TABLE token_families ADD COLUMN provider TEXT NOT NULL DEFAULT ''`,
      `ALTER TABLE device_codes ADD COLUMN provider TEXT NOT NULL DEFAULT ''`,
    ],
  },
  {
    number: 11,
    name: 'sign-ins that a user adds and removes',
    statements: [
      `ALTER TABLE identities ADD COLUMN id TEXT NOT NULL DEFAULT ''`,
      // An id like those that are made elsewhere: 0 to 7 and 25 digits, which are of its alphabet in base 16 too.
      `UPDATE identities SET id = 'idn_0' || substr(lower(hex(randomblob(13))), 2)`,
      `CREATE UNIQUE INDEX identities_by_id ON identities (id)`,
      // Of a flow that adds a sign-in to the account of who began it: the user, and the hash of the browser's session.
      `ALTER TABLE sign_in_flows ADD COLUMN link_user_id TEXT`,
      `ALTER TABLE sign_in_flows ADD COLUMN link_session TEXT`,
    ],
  },
  {
    number: 12,
    name: 'MCP servers',
    statements: [
      `CREATE TABLE mcp_servers (
        id TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id), owner_id TEXT NOT NULL,
        name TEXT NOT NULL, registry_id TEXT, record TEXT NOT NULL, revision INTEGER NOT NULL, created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL, UNIQUE (owner_id, name)) STRICT`,
      `CREATE INDEX mcp_servers_by_registry ON mcp_servers (owner_id, registry_id)`,
      `CREATE TABLE mcp_server_revisions (
        server_id TEXT NOT NULL, revision INTEGER NOT NULL, record TEXT NOT NULL, changed_by TEXT NOT NULL,
        created_at TEXT NOT NULL, PRIMARY KEY (server_id, revision)) STRICT`,
      // The vault paths that a server refers to.
      `CREATE TABLE mcp_references (
        server_id TEXT NOT NULL, owner_id TEXT NOT NULL, path TEXT NOT NULL, PRIMARY KEY (server_id, path)) STRICT`,
      `CREATE INDEX mcp_references_by_path ON mcp_references (owner_id, path)`,
      // What each sidecar said last of a server.
      `CREATE TABLE mcp_health (
        server_id TEXT NOT NULL, sidecar_id TEXT NOT NULL, state TEXT NOT NULL, last_error TEXT, checked_at TEXT NOT NULL,
        PRIMARY KEY (server_id, sidecar_id)) STRICT`,
    ],
  },
  {
    number: 13,
    name: 'mirror of the MCP registry',
    statements: [
      // `since`, `began_at` and `cursor` say how far the sync under way is; `since` is null for one of everything. `synced_at`:
      // the mirror has all that the registry had then. `change` counts the writes. Times that end in `_ms` are milliseconds.
      `CREATE TABLE registry_mirrors (
        id INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE, lease TEXT, lease_until_ms INTEGER NOT NULL DEFAULT 0,
        not_before_ms INTEGER NOT NULL DEFAULT 0, crawl INTEGER NOT NULL DEFAULT 0, since TEXT, began_at TEXT, cursor TEXT,
        pages INTEGER NOT NULL DEFAULT 0, synced_at TEXT, crawled_at TEXT, change INTEGER NOT NULL DEFAULT 0) STRICT`,
      // The newest versions. What is deleted stays without its document, so that others who hold a copy learn of it.
      `CREATE TABLE registry_servers (
        registry_id INTEGER NOT NULL REFERENCES registry_mirrors (id), name TEXT NOT NULL, description TEXT NOT NULL,
        facets TEXT NOT NULL, state TEXT NOT NULL, updated_at TEXT NOT NULL, crawl INTEGER NOT NULL, change INTEGER NOT NULL,
        PRIMARY KEY (registry_id, name)) STRICT, WITHOUT ROWID`,
      `CREATE INDEX registry_servers_by_change ON registry_servers (registry_id, change, name)`,
      `CREATE TABLE registry_documents (
        registry_id INTEGER NOT NULL, name TEXT NOT NULL, document TEXT NOT NULL, PRIMARY KEY (registry_id, name)) STRICT`,
    ],
  },
  {
    number: 14,
    name: 'approvals of tool calls',
    statements: [
      // The columns that are named after a connector and its operation hold an MCP server and its tool then.
      `ALTER TABLE approvals ADD COLUMN subject TEXT NOT NULL DEFAULT 'connector'
        CHECK (subject IN ('connector', 'mcp_server'))`,
    ],
  },
  {
    number: 15,
    name: 'where audit chains begin',
    statements: [
      // Up to this event, whose hash it has, a writer's chain was removed; no row: it is there from its first event on.
      `CREATE TABLE audit_beginnings (
        writer TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id), sequence INTEGER NOT NULL,
        hash TEXT NOT NULL, seal TEXT NOT NULL) STRICT`,
      `CREATE INDEX audit_beginnings_by_enterprise ON audit_beginnings (enterprise_id, writer)`,
    ],
  },
  {
    number: 16,
    name: 'who writes for an enterprise',
    statements: [
      // The chains of an enterprise in the order in which they were begun. How many there are, and a hash over them, is under
      // the seal of the control plane's own head.
      `CREATE TABLE audit_writers (
        enterprise_id TEXT NOT NULL, number INTEGER NOT NULL, writer TEXT NOT NULL UNIQUE,
        PRIMARY KEY (enterprise_id, number)) STRICT, WITHOUT ROWID`,
      `ALTER TABLE audit_heads ADD COLUMN writers INTEGER NOT NULL DEFAULT 0`,
      `ALTER TABLE audit_heads ADD COLUMN writers_hash TEXT NOT NULL DEFAULT ''`,
      // A worker of an earlier version that still runs would move a head without what is under its seal now: it cannot.
      `CREATE TRIGGER audit_heads_of_this_form BEFORE INSERT ON audit_heads WHEN NEW.seal NOT LIKE 'v2.%'
        BEGIN SELECT RAISE(ABORT, 'a seal of an earlier version'); END`,
    ],
  },
  {
    number: 17,
    name: 'where audit heads were sent',
    statements: [
      // Of each enterprise and each way out: the period whose heads were taken last. `held_until`: nobody sends meanwhile, for
      // somebody does, or it failed a moment ago. `problem` is a code and names no address.
      `CREATE TABLE audit_anchors (
        enterprise_id TEXT NOT NULL REFERENCES enterprises (id), way TEXT NOT NULL CHECK (way IN ('webhook', 'log')),
        period TEXT NOT NULL DEFAULT '', sent_at TEXT, holder TEXT NOT NULL, held_until TEXT NOT NULL,
        failures INTEGER NOT NULL DEFAULT 0, failed_at TEXT, problem TEXT,
        PRIMARY KEY (enterprise_id, way)) STRICT, WITHOUT ROWID`,
    ],
  },
  {
    number: 18,
    name: 'inactive connectors, and secrets that serve several',
    statements: [
      // Null until the connector first has a credential. What is installed already may have had one, so it counts as active.
      `ALTER TABLE connectors ADD COLUMN activated_at TEXT`,
      `UPDATE connectors SET activated_at = created_at`,
      // The same table, in which several connectors may refer to one place.
      `CREATE TABLE credentials_of_connectors (
        connector_id TEXT PRIMARY KEY, owner_id TEXT NOT NULL, path TEXT NOT NULL, kind TEXT NOT NULL,
        state TEXT NOT NULL, client TEXT, expires_at TEXT, renewable INTEGER NOT NULL, lease TEXT, lease_until INTEGER,
        updated_at TEXT NOT NULL) STRICT`,
      `INSERT INTO credentials_of_connectors (connector_id, owner_id, path, kind, state, client, expires_at, renewable,
        lease, lease_until, updated_at)
        SELECT connector_id, owner_id, path, kind, state, client, expires_at, renewable, lease, lease_until, updated_at
        FROM connector_credentials`,
      `DROP TABLE connector_credentials`,
      `ALTER TABLE credentials_of_connectors RENAME TO connector_credentials`,
      `CREATE INDEX connector_credentials_by_path ON connector_credentials (owner_id, path)`,
      // Whatever stores a credential activates its connector, also a worker of an earlier version that still runs.
      `CREATE TRIGGER connector_activated_by_insert AFTER INSERT ON connector_credentials WHEN NEW.state = 'ready'
        BEGIN UPDATE connectors SET activated_at = NEW.updated_at WHERE id = NEW.connector_id AND activated_at IS NULL; END`,
      `CREATE TRIGGER connector_activated_by_update AFTER UPDATE ON connector_credentials WHEN NEW.state = 'ready'
        BEGIN UPDATE connectors SET activated_at = NEW.updated_at WHERE id = NEW.connector_id AND activated_at IS NULL; END`,
    ],
  },
  {
    number: 19,
    name: 'secrets in use stay; every host of a connector',
    statements: [
      // A worker of an earlier version that still runs deletes the secret of a connector with the connector. One that somebody
      // stored, and that a binding or a connector still uses, stays.
      `CREATE TRIGGER secret_in_use_stays BEFORE DELETE ON secrets
        WHEN OLD.path NOT LIKE 'connectors/%' AND OLD.path NOT LIKE 'mcp-servers/%' AND (
          EXISTS (SELECT 1 FROM binding_credentials WHERE owner_id = OLD.owner_id AND path = OLD.path)
          OR EXISTS (SELECT 1 FROM connector_credentials WHERE owner_id = OLD.owner_id AND path = OLD.path))
        BEGIN SELECT RAISE(ABORT, 'the secret is in use'); END`,
      // Earlier versions wrote only the hosts of the spec, without those that single operations name.
      `UPDATE connectors SET hosts = (
        SELECT json_group_array(DISTINCT host.value) FROM json_each(connectors.spec, '$.operations') AS operation,
          json_each(COALESCE(json_extract(operation.value, '$.hosts'), json_extract(connectors.spec, '$.hosts'))) AS host)`,
    ],
  },
  {
    number: 20,
    name: 'logins of programs that wait for a person',
    statements: [
      // `sealed`: the private key while it is open, the tokens once they are held.
      `CREATE TABLE pending_logins (
        id TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users (id), program TEXT NOT NULL, token_url TEXT NOT NULL,
        client_id TEXT NOT NULL, grants TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('open', 'held')),
        public_key TEXT NOT NULL, sealed TEXT NOT NULL, account TEXT, created_at TEXT NOT NULL,
        expires_at INTEGER NOT NULL) STRICT`,
      `CREATE UNIQUE INDEX pending_logins_by_program ON pending_logins (user_id, program)`,
      `CREATE INDEX pending_logins_by_expiry ON pending_logins (expires_at)`,
    ],
  },
  {
    number: 21,
    name: 'titles and packages of the mirrored servers',
    statements: [
      // Filled when everything is fetched again, which is due with the next look at the registry.
      `ALTER TABLE registry_servers ADD COLUMN search_text TEXT NOT NULL DEFAULT ''`,
      `UPDATE registry_mirrors SET crawled_at = NULL, not_before_ms = 0`,
    ],
  },
  {
    number: 22,
    name: 'hosts that are not intercepted',
    statements: [
      `CREATE TABLE tunnel_hosts (
        id TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id), owner_id TEXT NOT NULL, host TEXT NOT NULL,
        created_at TEXT NOT NULL) STRICT`,
      `CREATE UNIQUE INDEX tunnel_hosts_by_owner ON tunnel_hosts (owner_id, host)`,
    ],
  },
  {
    number: 23,
    name: 'which sidecar captures a login, and where its tokens are revoked',
    statements: [
      `ALTER TABLE pending_logins ADD COLUMN client TEXT`,
      `ALTER TABLE pending_logins ADD COLUMN sidecar_id TEXT`,
    ],
  },
  {
    number: 24,
    name: 'tools of MCP servers',
    statements: [
      // Each form of each tool that a gateway has seen. A server without rows has not been listed yet.
      `CREATE TABLE mcp_tools (
        server_id TEXT NOT NULL, hash TEXT NOT NULL, name TEXT NOT NULL, definition TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('reviewed', 'waiting')), seen_at TEXT NOT NULL, reviewed_by TEXT,
        reviewed_at TEXT, PRIMARY KEY (server_id, hash)) STRICT, WITHOUT ROWID`,
      // A worker of an earlier version that still runs deletes only the server.
      `CREATE TRIGGER mcp_tools_end_with_server AFTER DELETE ON mcp_servers
        BEGIN DELETE FROM mcp_tools WHERE server_id = OLD.id; END`,
    ],
  },
  {
    number: 25,
    name: 'MCP clients that people connect',
    statements: [
      // `document`: the copy of a document at the URL that is the client's id. Either kind is deleted when it expires.
      `CREATE TABLE mcp_clients (
        id TEXT PRIMARY KEY, kind TEXT NOT NULL CHECK (kind IN ('registered', 'document')), name TEXT NOT NULL,
        redirect_uris TEXT NOT NULL, created_at TEXT NOT NULL, expires_at INTEGER NOT NULL) STRICT`,
      `CREATE INDEX mcp_clients_by_expiry ON mcp_clients (expires_at)`,
      // `last_used_at` is null until the client has redeemed its code. Until then the connection lives as long as the code.
      `CREATE TABLE mcp_connections (
        id TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users (id), provider TEXT NOT NULL, client_id TEXT NOT NULL,
        client_name TEXT NOT NULL, redirect_origin TEXT NOT NULL, created_at TEXT NOT NULL, last_used_at TEXT,
        expires_at INTEGER NOT NULL, revoked_at TEXT) STRICT`,
      `CREATE INDEX mcp_connections_by_user ON mcp_connections (user_id, id)`,
      `CREATE INDEX mcp_connections_by_expiry ON mcp_connections (expires_at)`,
      // Used ones are kept, so that a second use is noticed.
      `CREATE TABLE mcp_codes (
        code_hash TEXT PRIMARY KEY, connection_id TEXT NOT NULL, redirect_uri TEXT NOT NULL, challenge TEXT NOT NULL,
        valid_until INTEGER NOT NULL, expires_at INTEGER NOT NULL, used_at TEXT) STRICT`,
      `CREATE INDEX mcp_codes_by_expiry ON mcp_codes (expires_at)`,
      `CREATE TABLE mcp_refresh_tokens (
        token_hash TEXT PRIMARY KEY, connection_id TEXT NOT NULL, expires_at INTEGER NOT NULL, used_at TEXT) STRICT`,
      `CREATE INDEX mcp_refresh_tokens_by_expiry ON mcp_refresh_tokens (expires_at)`,
    ],
  },
  {
    number: 26,
    name: 'hosts that MCP servers were refused',
    statements: [`ALTER TABLE mcp_health ADD COLUMN refused_hosts TEXT NOT NULL DEFAULT '[]'`],
  },
  {
    number: 27,
    name: 'people',
    statements: [
      // Each user so far is a person. The person's id has the same characters, so it still sorts by creation.
      `CREATE TABLE people (id TEXT PRIMARY KEY, verified_email TEXT UNIQUE, created_at TEXT NOT NULL) STRICT`,
      `INSERT INTO people (id, verified_email, created_at)
        SELECT 'per_' || substr(id, 5), verified_email, created_at FROM users`,
      `ALTER TABLE users ADD COLUMN person_id TEXT REFERENCES people (id)`,
      `UPDATE users SET person_id = 'per_' || substr(id, 5)`,
      `CREATE UNIQUE INDEX users_by_person ON users (person_id, enterprise_id)`,
      `ALTER TABLE identities ADD COLUMN person_id TEXT REFERENCES people (id)`,
      `UPDATE identities SET person_id = 'per_' || substr(user_id, 5)`,
      `CREATE INDEX identities_by_person ON identities (person_id)`,
      // A worker of an earlier version that still runs adds users and identities without a person, and reads and sets the
      // address of the user. A person's first user has the person's address.
      `CREATE TRIGGER user_without_person AFTER INSERT ON users WHEN NEW.person_id IS NULL
        BEGIN
          INSERT INTO people (id, verified_email, created_at)
            VALUES ('per_' || substr(NEW.id, 5), NEW.verified_email, NEW.created_at);
          UPDATE users SET person_id = 'per_' || substr(NEW.id, 5) WHERE id = NEW.id;
        END`,
      `CREATE TRIGGER identity_without_person AFTER INSERT ON identities WHEN NEW.person_id IS NULL
        BEGIN UPDATE identities SET person_id = (SELECT person_id FROM users WHERE id = NEW.user_id) WHERE id = NEW.id; END`,
      `CREATE TRIGGER user_address_to_person AFTER UPDATE OF verified_email ON users WHEN NEW.verified_email IS NOT NULL
        BEGIN
          UPDATE people SET verified_email = NEW.verified_email WHERE id = NEW.person_id AND verified_email IS NULL;
        END`,
      `CREATE TRIGGER person_address_to_new_user AFTER INSERT ON users WHEN NEW.person_id IS NOT NULL
        BEGIN
          UPDATE users SET verified_email = (SELECT verified_email FROM people WHERE id = NEW.person_id)
            WHERE id = NEW.id AND NOT EXISTS (SELECT 1 FROM users WHERE person_id = NEW.person_id AND id <> NEW.id);
        END`,
      `CREATE TRIGGER person_address_to_user AFTER UPDATE OF verified_email ON people
        BEGIN
          UPDATE users SET verified_email = NEW.verified_email
            WHERE id = (SELECT min(id) FROM users WHERE person_id = NEW.id);
        END`,
    ],
  },
  {
    number: 28,
    name: 'MCP clients that may run operations',
    statements: [
      // 0: the person was asked about servers only, as by a worker of an earlier version.
      `ALTER TABLE mcp_connections ADD COLUMN has_operations INTEGER NOT NULL DEFAULT 0 CHECK (has_operations IN (0, 1))`,
    ],
  },
  {
    number: 29,
    name: 'prompts of MCP servers',
    statements: [`ALTER TABLE mcp_tools ADD COLUMN kind TEXT NOT NULL DEFAULT 'tool'`],
  },
  {
    number: 30,
    name: 'SAML providers of enterprises',
    statements: [
      // `certificates`: public keys and fingerprints, no secret.
      `CREATE TABLE enterprise_saml (
        enterprise_id TEXT PRIMARY KEY REFERENCES enterprises (id), entity_id TEXT NOT NULL, sso_url TEXT NOT NULL,
        certificates TEXT NOT NULL, metadata_url TEXT, updated_at TEXT NOT NULL) STRICT`,
      // Accepted assertions, so that none is accepted twice. The identity is deleted when its browser has redeemed the code.
      `CREATE TABLE saml_answers (
        assertion_hash TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id), request_id TEXT NOT NULL,
        code_hash TEXT, identity TEXT, expires_at INTEGER NOT NULL) STRICT`,
      `CREATE INDEX saml_answers_by_expiry ON saml_answers (expires_at)`,
      `CREATE UNIQUE INDEX saml_answers_by_code ON saml_answers (code_hash)`,
    ],
  },
  {
    number: 31,
    name: 'which enterprise vouches for an identity',
    statements: [
      `ALTER TABLE identities ADD COLUMN vouched_by TEXT REFERENCES enterprises (id)`,
      `UPDATE identities SET vouched_by = provider WHERE substr(provider, 1, 4) = 'ent_'`,
      // Whoever runs an enterprise's provider may have added these, unless they prove the address that the person had before.
      `UPDATE identities SET vouched_by = (
          SELECT earlier.vouched_by FROM identities AS earlier WHERE earlier.person_id = identities.person_id
            AND earlier.vouched_by IS NOT NULL AND earlier.created_at <= identities.created_at LIMIT 1)
        WHERE vouched_by IS NULL AND NOT EXISTS (
          SELECT 1 FROM people WHERE id = identities.person_id AND verified_email = identities.email
            AND identities.email_verified = 1)`,
      // A worker of an earlier version that still runs.
      `CREATE TRIGGER identity_of_enterprise AFTER INSERT ON identities
        WHEN NEW.vouched_by IS NULL AND substr(NEW.provider, 1, 4) = 'ent_'
        BEGIN UPDATE identities SET vouched_by = NEW.provider WHERE id = NEW.id; END`,
    ],
  },
  {
    number: 32,
    name: 'who asks for an approval',
    statements: [
      `ALTER TABLE approvals ADD COLUMN session_name TEXT`,
      `ALTER TABLE approvals ADD COLUMN folder TEXT`,
      `ALTER TABLE approvals ADD COLUMN held_until TEXT`,
      `CREATE INDEX approvals_by_kind ON approvals (enterprise_id, connector_id, operation, id)`,
    ],
  },
  {
    number: 33,
    name: 'invitations',
    statements: [
      `CREATE TABLE invitations (
        id TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id), email TEXT NOT NULL,
        role TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'member')), token_hash TEXT NOT NULL UNIQUE,
        invited_by TEXT NOT NULL REFERENCES users (id), created_at TEXT NOT NULL, ends_at INTEGER NOT NULL,
        outcome TEXT CHECK (outcome IN ('accepted', 'revoked')), expires_at INTEGER NOT NULL) STRICT`,
      `CREATE INDEX invitations_by_enterprise ON invitations (enterprise_id, id)`,
      `CREATE INDEX invitations_by_expiry ON invitations (expires_at)`,
    ],
  },
  {
    number: 34,
    name: 'members who left',
    statements: [
      `ALTER TABLE users ADD COLUMN left_at TEXT`,
      // A worker of an earlier version that still runs takes such a user for a suspended one.
      `CREATE TRIGGER left_stays_suspended AFTER UPDATE OF suspended_at ON users
        WHEN NEW.left_at IS NOT NULL AND NEW.suspended_at IS NULL
        BEGIN UPDATE users SET suspended_at = NEW.left_at WHERE id = NEW.id; END`,
    ],
  },
  {
    number: 35,
    name: 'grants of approvals',
    statements: [
      `ALTER TABLE approvals ADD COLUMN scope TEXT`,
      `ALTER TABLE approvals ADD COLUMN grant_id TEXT`,
      `CREATE TABLE approval_grants (
        id TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id),
        user_id TEXT NOT NULL REFERENCES users (id), subject TEXT NOT NULL CHECK (subject IN ('connector', 'mcp_server')),
        connector_id TEXT NOT NULL, connector_owner_id TEXT NOT NULL, connector_fqn TEXT NOT NULL,
        connector_version TEXT NOT NULL, operation TEXT NOT NULL, summary TEXT NOT NULL, covers TEXT NOT NULL,
        identical_only INTEGER NOT NULL, sidecar_id TEXT, session_id TEXT, session_name TEXT, times INTEGER,
        used INTEGER NOT NULL, last_used_at TEXT NOT NULL, given_at TEXT NOT NULL, ends_at TEXT NOT NULL,
        revoked_at TEXT, revoked_by TEXT) STRICT`,
      `CREATE INDEX approval_grants_by_request ON approval_grants (user_id, connector_id, covers)`,
      `CREATE INDEX approval_grants_by_enterprise ON approval_grants (enterprise_id, id)`,
      `CREATE INDEX approvals_by_grant ON approvals (grant_id)`,
    ],
  },
  {
    number: 36,
    name: 'requests shown to who decides',
    statements: [
      `CREATE TABLE approval_views (
        id TEXT PRIMARY KEY, approval_id TEXT NOT NULL, user_id TEXT NOT NULL, key TEXT NOT NULL, answer TEXT,
        created_at TEXT NOT NULL) STRICT`,
      `CREATE INDEX approval_views_by_approval ON approval_views (approval_id, id)`,
      `CREATE INDEX approval_views_by_time ON approval_views (created_at)`,
    ],
  },
  {
    number: 37,
    name: 'sinks of audit events',
    statements: [
      `CREATE TABLE audit_sinks (
        id TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id), kind TEXT NOT NULL,
        name TEXT NOT NULL, host TEXT NOT NULL, types TEXT, sealed TEXT NOT NULL, created_at TEXT NOT NULL,
        cursor INTEGER NOT NULL, batch INTEGER, holder TEXT NOT NULL DEFAULT '', held_until TEXT NOT NULL DEFAULT '',
        next_try_at TEXT NOT NULL DEFAULT '', failures INTEGER NOT NULL DEFAULT 0, failing_since TEXT, problem TEXT,
        delivered_at TEXT, rejected INTEGER NOT NULL DEFAULT 0, disabled_at TEXT, disabled_reason TEXT) STRICT`,
      `CREATE INDEX audit_sinks_by_enterprise ON audit_sinks (enterprise_id, id)`,
      `CREATE TABLE audit_dead_letters (
        sink_id TEXT NOT NULL REFERENCES audit_sinks (id), position INTEGER NOT NULL, event_id TEXT NOT NULL,
        problem TEXT NOT NULL, failed_at TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 1,
        replay INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (sink_id, position)) STRICT`,
    ],
  },
  {
    number: 38,
    name: 'deleted enterprises',
    statements: [`ALTER TABLE enterprises ADD COLUMN deleted_at TEXT`],
  },
  {
    number: 39,
    name: 'rules about MCP servers',
    statements: [
      `CREATE TABLE mcp_rules (
        enterprise_id TEXT PRIMARY KEY REFERENCES enterprises (id), rules TEXT NOT NULL, updated_at TEXT NOT NULL) STRICT`,
      `CREATE TABLE mcp_derivations (
        server_id TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (server_id, hash)) STRICT`,
      `CREATE TRIGGER mcp_derivations_end_with_server AFTER DELETE ON mcp_servers
        BEGIN DELETE FROM mcp_derivations WHERE server_id = OLD.id; END`,
    ],
  },
  {
    number: 40,
    name: 'sources of secrets',
    statements: [
      // `config`: no secret. The secret's own row has an empty value, so that a worker of an earlier version releases nothing.
      `CREATE TABLE secret_sources (
        secret_id TEXT PRIMARY KEY, kind TEXT NOT NULL, config TEXT NOT NULL, sealed_material TEXT NOT NULL,
        sealed_value TEXT, minted_for TEXT, minted_at TEXT, expires_at TEXT, failure TEXT, failed_at TEXT,
        lease TEXT, lease_until INTEGER, updated_at TEXT NOT NULL) STRICT`,
      `CREATE INDEX secret_sources_by_expiry ON secret_sources (expires_at)`,
      // Whoever deletes the secret or stores a value in its place, also a worker of an earlier version.
      `CREATE TRIGGER source_of_deleted_secret AFTER DELETE ON secrets
        BEGIN DELETE FROM secret_sources WHERE secret_id = OLD.id; END`,
      `CREATE TRIGGER source_of_replaced_secret AFTER UPDATE OF version ON secrets WHEN NEW.version <> OLD.version
        BEGIN DELETE FROM secret_sources WHERE secret_id = OLD.id; END`,
    ],
  },
  {
    number: 41,
    name: 'events of an enterprise in the order of arrival',
    // Without it, each look of a sink or a stream reads and sorts every event of the enterprise.
    statements: [`CREATE INDEX audit_events_by_arrival ON audit_events (enterprise_id, position)`],
  },
  {
    number: 42,
    name: 'deleted accounts',
    statements: [
      // SHA-256 over the enterprise's id and the address.
      `CREATE TABLE departed_addresses (
        enterprise_id TEXT NOT NULL REFERENCES enterprises (id), address_hash TEXT NOT NULL,
        PRIMARY KEY (enterprise_id, address_hash)) STRICT, WITHOUT ROWID`,
    ],
  },
  {
    number: 43,
    name: 'groups and shares',
    statements: [
      `CREATE TABLE groups (
        id TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id),
        name TEXT NOT NULL COLLATE NOCASE, created_at TEXT NOT NULL) STRICT`,
      `CREATE UNIQUE INDEX groups_by_name ON groups (enterprise_id, name)`,
      `CREATE TABLE group_members (
        group_id TEXT NOT NULL REFERENCES groups (id), user_id TEXT NOT NULL REFERENCES users (id),
        PRIMARY KEY (group_id, user_id)) STRICT, WITHOUT ROWID`,
      `CREATE INDEX group_members_by_user ON group_members (user_id)`,
      `CREATE TABLE shares (
        id TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id),
        owner_id TEXT NOT NULL REFERENCES users (id), kind TEXT NOT NULL, resource_id TEXT NOT NULL,
        user_id TEXT REFERENCES users (id), group_id TEXT REFERENCES groups (id), created_at TEXT NOT NULL,
        CHECK ((user_id IS NULL) <> (group_id IS NULL))) STRICT`,
      `CREATE UNIQUE INDEX shares_by_resource ON shares (resource_id, coalesce(user_id, group_id))`,
      `CREATE INDEX shares_by_enterprise ON shares (enterprise_id, id)`,
      `CREATE INDEX shares_by_owner ON shares (owner_id, id)`,
      `CREATE INDEX shares_by_user ON shares (user_id)`,
      `CREATE INDEX shares_by_group ON shares (group_id)`,
      `CREATE TABLE share_acceptances (
        share_id TEXT NOT NULL REFERENCES shares (id), user_id TEXT NOT NULL REFERENCES users (id),
        revision TEXT NOT NULL, PRIMARY KEY (share_id, user_id)) STRICT, WITHOUT ROWID`,
      `CREATE INDEX share_acceptances_by_user ON share_acceptances (user_id)`,
      // What a share hangs on takes it along, also if a worker of an earlier version deletes that.
      `CREATE TRIGGER shares_end_with_binding AFTER DELETE ON host_bindings
        BEGIN DELETE FROM shares WHERE kind = 'host_binding' AND resource_id = OLD.id; END`,
      `CREATE TRIGGER shares_end_with_group BEFORE DELETE ON groups
        BEGIN
          DELETE FROM shares WHERE group_id = OLD.id;
          DELETE FROM group_members WHERE group_id = OLD.id;
        END`,
      `CREATE TRIGGER shares_end_with_member AFTER UPDATE OF left_at ON users WHEN NEW.left_at IS NOT NULL
        BEGIN
          DELETE FROM share_acceptances WHERE user_id = NEW.id;
          DELETE FROM shares WHERE user_id = NEW.id OR owner_id = NEW.id;
          DELETE FROM group_members WHERE user_id = NEW.id;
        END`,
      `CREATE TRIGGER acceptances_end_with_share BEFORE DELETE ON shares
        BEGIN DELETE FROM share_acceptances WHERE share_id = OLD.id; END`,
      // The policy of everybody in the enterprise counts as changed, because any of them may have the share.
      `CREATE TRIGGER policy_of_new_share AFTER INSERT ON shares
        BEGIN UPDATE enterprises SET policy_version = policy_version + 1 WHERE id = NEW.enterprise_id; END`,
      `CREATE TRIGGER policy_of_ended_share AFTER DELETE ON shares
        BEGIN UPDATE enterprises SET policy_version = policy_version + 1 WHERE id = OLD.enterprise_id; END`,
      `CREATE TRIGGER policy_of_acceptance AFTER INSERT ON share_acceptances
        BEGIN UPDATE users SET policy_version = policy_version + 1 WHERE id = NEW.user_id; END`,
      `CREATE TRIGGER policy_of_ended_acceptance AFTER DELETE ON share_acceptances
        BEGIN UPDATE users SET policy_version = policy_version + 1 WHERE id = OLD.user_id; END`,
      `CREATE TRIGGER policy_of_new_group_member AFTER INSERT ON group_members
        WHEN EXISTS (SELECT 1 FROM shares WHERE group_id = NEW.group_id)
        BEGIN UPDATE users SET policy_version = policy_version + 1 WHERE id = NEW.user_id; END`,
      `CREATE TRIGGER policy_of_ended_group_member AFTER DELETE ON group_members
        BEGIN UPDATE users SET policy_version = policy_version + 1 WHERE id = OLD.user_id; END`,
      // A change of what is shared, of its secret, or of whoever shares it.
      `CREATE TRIGGER policy_of_sharer AFTER UPDATE OF policy_version, role, suspended_at ON users
        WHEN EXISTS (SELECT 1 FROM shares WHERE owner_id = NEW.id)
        BEGIN UPDATE enterprises SET policy_version = policy_version + 1 WHERE id = NEW.enterprise_id; END`,
    ],
  },
  {
    number: 44,
    name: 'service accounts',
    statements: [
      `ALTER TABLE sidecars ADD COLUMN expires_at TEXT`,
      `ALTER TABLE sidecars ADD COLUMN own_only INTEGER NOT NULL DEFAULT 0`,
      `CREATE TABLE service_accounts (
        user_id TEXT PRIMARY KEY REFERENCES users (id), enterprise_id TEXT NOT NULL REFERENCES enterprises (id),
        issuer TEXT NOT NULL, audience TEXT NOT NULL, claims TEXT NOT NULL, reach TEXT NOT NULL,
        minutes INTEGER NOT NULL, keys TEXT, last_joined_at TEXT) STRICT`,
      `CREATE INDEX service_accounts_by_enterprise ON service_accounts (enterprise_id, user_id)`,
      `CREATE TABLE join_tokens (token_hash TEXT PRIMARY KEY, expires_at INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
      `CREATE INDEX join_tokens_by_expiry ON join_tokens (expires_at)`,
      // A worker of an earlier version that still runs offers it as a member, whose role could be changed.
      `CREATE TRIGGER service_account_stays_member AFTER UPDATE OF role ON users
        WHEN NEW.role <> 'member' AND EXISTS (SELECT 1 FROM service_accounts WHERE user_id = NEW.id)
        BEGIN UPDATE users SET role = 'member' WHERE id = NEW.id; END`,
    ],
  },
  {
    number: 45,
    name: 'directories of enterprises (SCIM)',
    statements: [
      `CREATE TABLE scim_tokens (
        id TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id), name TEXT NOT NULL,
        token_hash TEXT NOT NULL UNIQUE, created_by TEXT NOT NULL REFERENCES users (id), created_at TEXT NOT NULL,
        expires_at TEXT NOT NULL, last_used_at TEXT, revoked_at TEXT) STRICT`,
      `CREATE INDEX scim_tokens_by_enterprise ON scim_tokens (enterprise_id, id)`,
      `CREATE TABLE scim_users (
        user_id TEXT PRIMARY KEY REFERENCES users (id), enterprise_id TEXT NOT NULL REFERENCES enterprises (id),
        user_name TEXT NOT NULL COLLATE NOCASE, external_id TEXT, email TEXT NOT NULL, attributes TEXT NOT NULL,
        deactivated_at TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL) STRICT`,
      `CREATE UNIQUE INDEX scim_users_by_name ON scim_users (enterprise_id, user_name)`,
      `CREATE UNIQUE INDEX scim_users_by_email ON scim_users (enterprise_id, email)`,
      `CREATE INDEX scim_users_by_external_id ON scim_users (enterprise_id, external_id)`,
      `CREATE INDEX scim_users_by_id ON scim_users (enterprise_id, user_id)`,
      `CREATE TABLE scim_groups (
        group_id TEXT PRIMARY KEY REFERENCES groups (id), enterprise_id TEXT NOT NULL REFERENCES enterprises (id),
        external_id TEXT, updated_at TEXT NOT NULL) STRICT`,
      `CREATE INDEX scim_groups_by_enterprise ON scim_groups (enterprise_id, group_id)`,
      // A worker of an earlier version that still runs removes members and groups too.
      `CREATE TRIGGER scim_user_ends_with_member AFTER UPDATE OF left_at ON users WHEN NEW.left_at IS NOT NULL
        BEGIN DELETE FROM scim_users WHERE user_id = NEW.id; END`,
      `CREATE TRIGGER scim_group_ends_with_group BEFORE DELETE ON groups
        BEGIN DELETE FROM scim_groups WHERE group_id = OLD.id; END`,
    ],
  },
  {
    number: 46,
    name: 'requests by minute',
    statements: [
      `CREATE TABLE request_minutes (
        enterprise_id TEXT NOT NULL, minute INTEGER NOT NULL, decision TEXT NOT NULL, requests INTEGER NOT NULL,
        PRIMARY KEY (enterprise_id, minute, decision)) STRICT, WITHOUT ROWID`,
      // Those of the last day, by the types and counts of shared/report/request_minutes.ts. A damaged event is left out.
      `INSERT INTO request_minutes
        SELECT enterprise_id, unixepoch(time) / 60, CASE
          WHEN type = 'sandbox.proxy.binding_injected' THEN 'added'
          WHEN type = 'connector.proxy.proxied' THEN 'connector'
          WHEN type IN ('sandbox.proxy.passthrough', 'sandbox.proxy.foreign_credential_kept') THEN 'passed'
          ELSE 'refused' END AS decision,
          SUM(CASE WHEN type IN ('sandbox.proxy.rejected', 'sandbox.proxy.trust_denied')
            THEN MAX(1, MIN(CAST(COALESCE(data ->> '$."svc.proxy.count"', 1) AS INTEGER), 1000000)) ELSE 1 END)
        FROM (SELECT enterprise_id, type, time, CASE WHEN json_valid(data) THEN data ELSE '{}' END AS data
          FROM audit_events
          WHERE type IN ('sandbox.proxy.binding_injected', 'connector.proxy.proxied', 'sandbox.proxy.passthrough',
            'sandbox.proxy.foreign_credential_kept', 'sandbox.proxy.rejected', 'sandbox.proxy.trust_denied',
            'connector.proxy.rejected')
            AND time > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 day')
            AND time < strftime('%Y-%m-%dT%H:%M:%fZ', 'now') AND unixepoch(time) IS NOT NULL)
        WHERE COALESCE(data ->> '$."svc.proxy.reason"', '') <> 'answered_locally'
        GROUP BY 1, 2, 3`,
    ],
  },
  {
    number: 47,
    name: 'requests to join',
    statements: [
      `ALTER TABLE enterprises ADD COLUMN domain_joining TEXT NOT NULL DEFAULT 'automatic'`,
      `CREATE TABLE join_requests (
        id TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id),
        person_id TEXT NOT NULL REFERENCES people (id), email TEXT NOT NULL, display_name TEXT NOT NULL,
        created_at TEXT NOT NULL, ends_at INTEGER NOT NULL, outcome TEXT, expires_at INTEGER NOT NULL) STRICT`,
      `CREATE INDEX join_requests_by_enterprise ON join_requests (enterprise_id, id)`,
      `CREATE INDEX join_requests_by_person ON join_requests (person_id, enterprise_id)`,
      `CREATE INDEX join_requests_by_expiry ON join_requests (expires_at)`,
    ],
  },
  {
    number: 48,
    name: 'saved views of the audit log',
    statements: [
      `CREATE TABLE saved_views (
        user_id TEXT NOT NULL REFERENCES users (id), name TEXT NOT NULL, query TEXT NOT NULL, created_at TEXT NOT NULL,
        PRIMARY KEY (user_id, name)) STRICT, WITHOUT ROWID`,
    ],
  },
  {
    number: 49,
    name: 'shares of connectors and MCP servers',
    statements: [
      `CREATE TRIGGER shares_end_with_connector AFTER DELETE ON connectors
        BEGIN DELETE FROM shares WHERE kind = 'connector' AND resource_id = OLD.id; END`,
      `CREATE TRIGGER shares_end_with_server AFTER DELETE ON mcp_servers
        BEGIN DELETE FROM shares WHERE kind = 'mcp_server' AND resource_id = OLD.id; END`,
    ],
  },
  {
    number: 50,
    name: 'client certificates',
    statements: [
      `CREATE TABLE client_certificates (
        id TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id), owner_id TEXT NOT NULL, host TEXT NOT NULL,
        path TEXT NOT NULL, effect TEXT, http2 INTEGER NOT NULL, created_at TEXT NOT NULL) STRICT`,
      `CREATE UNIQUE INDEX client_certificates_by_owner ON client_certificates (owner_id, host)`,
      `ALTER TABLE secrets ADD COLUMN expires_at TEXT`,
    ],
  },
  {
    number: 51,
    name: 'indexes of what is counted',
    statements: [
      // With the sizes, so that a count reads no values.
      `CREATE INDEX secrets_by_enterprise ON secrets (enterprise_id, owner_id, octet_length(sealed))`,
      `CREATE INDEX host_bindings_by_enterprise ON host_bindings (enterprise_id, owner_id, octet_length(record))`,
      `CREATE INDEX connectors_by_enterprise ON connectors (enterprise_id, owner_id, octet_length(spec))`,
      `CREATE INDEX mcp_servers_by_enterprise ON mcp_servers (enterprise_id, owner_id, octet_length(record))`,
      `CREATE INDEX users_by_enterprise ON users (enterprise_id) WHERE left_at IS NULL`,
      `CREATE INDEX sidecars_live_by_user ON sidecars (user_id, expires_at) WHERE revoked_at IS NULL`,
      `CREATE INDEX sidecars_live_by_enterprise ON sidecars (enterprise_id, expires_at) WHERE revoked_at IS NULL`,
    ],
  },
  {
    number: 52,
    name: 'what revokes a minted value',
    statements: [`ALTER TABLE secret_sources ADD COLUMN sealed_revocation TEXT`],
  },
  {
    number: 53,
    name: 'rules about who approves',
    statements: [
      // Not a reference to the group: a rule whose group is gone still holds, and nobody can approve by it.
      `CREATE TABLE approval_rules (
        id TEXT PRIMARY KEY, enterprise_id TEXT NOT NULL REFERENCES enterprises (id),
        subject TEXT NOT NULL CHECK (subject IN ('connector', 'mcp_server')), name TEXT NOT NULL, action TEXT NOT NULL,
        effects TEXT, role TEXT CHECK (role IN ('owner', 'admin', 'member')), group_id TEXT, persons INTEGER NOT NULL,
        excludes_requester INTEGER NOT NULL, created_at TEXT NOT NULL,
        CHECK ((role IS NULL) <> (group_id IS NULL))) STRICT`,
      `CREATE INDEX approval_rules_by_enterprise ON approval_rules (enterprise_id, id)`,
      `CREATE TABLE approval_votes (
        approval_id TEXT NOT NULL REFERENCES approvals (id) ON DELETE CASCADE, user_id TEXT NOT NULL REFERENCES users (id),
        voted_at TEXT NOT NULL, grant_seconds INTEGER, grant_times INTEGER,
        PRIMARY KEY (approval_id, user_id)) STRICT, WITHOUT ROWID`,
      `ALTER TABLE approvals ADD COLUMN effect TEXT`,
      `ALTER TABLE approvals ADD COLUMN rules TEXT NOT NULL DEFAULT ''`,
      `ALTER TABLE approval_grants ADD COLUMN effect TEXT`,
      `ALTER TABLE approval_grants ADD COLUMN rules TEXT NOT NULL DEFAULT ''`,
    ],
  },
  {
    number: 54,
    name: 'approvals end with what they were given by',
    statements: [
      // What was allowed where there are rules, or were, is asked for again: nothing says who gave it.
      `UPDATE approvals SET state = 'expired' WHERE state = 'approved'
        AND (rules <> '' OR enterprise_id IN (SELECT enterprise_id FROM approval_rules))`,
      `UPDATE approval_grants SET revoked_at = given_at WHERE revoked_at IS NULL
        AND (rules <> '' OR enterprise_id IN (SELECT enterprise_id FROM approval_rules))`,
      // `rules` stays in both tables: an earlier worker may still run, and finds nothing approved by its rules.
      `ALTER TABLE approval_grants ADD COLUMN approval_id TEXT`,
      `ALTER TABLE approval_votes ADD COLUMN ended INTEGER NOT NULL DEFAULT 0`,
      `UPDATE approval_votes SET ended = 1`,
      `CREATE INDEX approval_votes_by_user ON approval_votes (user_id) WHERE ended = 0`,
      `CREATE INDEX approval_rules_by_group ON approval_rules (group_id)`,
      // For good: whoever is let in again has to approve again.
      `CREATE TRIGGER votes_end_with_standing AFTER UPDATE OF person_id, role, suspended_at, left_at ON users
        WHEN NEW.role <> OLD.role OR NEW.person_id IS NOT OLD.person_id OR NEW.suspended_at IS NOT NULL
          OR NEW.left_at IS NOT NULL
        BEGIN UPDATE approval_votes SET ended = 1 WHERE user_id = NEW.id AND ended = 0; END`,
      `CREATE TRIGGER votes_end_with_membership AFTER DELETE ON group_members
        WHEN EXISTS (SELECT 1 FROM approval_rules WHERE group_id = OLD.group_id)
        BEGIN UPDATE approval_votes SET ended = 1 WHERE user_id = OLD.user_id AND ended = 0; END`,
      // A connector that gets its former version back, or a server its former name, revives nothing.
      `ALTER TABLE approvals ADD COLUMN ended INTEGER NOT NULL DEFAULT 0`,
      `ALTER TABLE approval_grants ADD COLUMN ended INTEGER NOT NULL DEFAULT 0`,
      `CREATE TRIGGER approvals_end_with_version AFTER UPDATE OF version ON connectors WHEN NEW.version <> OLD.version
        BEGIN
          UPDATE approvals SET ended = 1 WHERE enterprise_id = NEW.enterprise_id AND connector_id = NEW.id
            AND state IN ('pending', 'approved');
          UPDATE approval_grants SET ended = 1 WHERE enterprise_id = NEW.enterprise_id AND connector_id = NEW.id;
        END`,
      `CREATE TRIGGER approvals_end_with_name AFTER UPDATE OF name ON mcp_servers WHEN NEW.name <> OLD.name
        BEGIN UPDATE approvals SET ended = 1 WHERE enterprise_id = NEW.enterprise_id AND connector_id = NEW.id
          AND state IN ('pending', 'approved'); END`,
      `CREATE TRIGGER grants_end_with_server AFTER UPDATE OF record ON mcp_servers
        BEGIN UPDATE approval_grants SET ended = 1 WHERE enterprise_id = NEW.enterprise_id AND connector_id = NEW.id; END`,
      // Also if an earlier worker, which ends nothing with a rule, changes the rules.
      `CREATE TRIGGER approvals_end_with_new_rule AFTER INSERT ON approval_rules BEGIN ${endAbout('NEW')} END`,
      `CREATE TRIGGER approvals_end_with_gone_rule AFTER DELETE ON approval_rules BEGIN ${endAbout('OLD')} END`,
      // What an earlier worker allows says nowhere who allowed it: under a rule it does not hold.
      `CREATE TRIGGER approval_without_votes_ends AFTER UPDATE OF state ON approvals
        WHEN NEW.state = 'approved' AND NOT EXISTS (SELECT 1 FROM approval_votes WHERE approval_id = NEW.id AND ended = 0)
          AND EXISTS (SELECT 1 FROM approval_rules WHERE ${ruleIsAbout('approval_rules', 'NEW')})
        BEGIN UPDATE approvals SET ended = 1 WHERE id = NEW.id; END`,
      `CREATE TRIGGER grant_without_approval_ends AFTER INSERT ON approval_grants
        WHEN NEW.approval_id IS NULL AND EXISTS (SELECT 1 FROM approval_rules WHERE ${ruleIsAbout('approval_rules', 'NEW')})
        BEGIN UPDATE approval_grants SET ended = 1 WHERE id = NEW.id; END`,
    ],
  },
  {
    number: 55,
    name: 'mail to members',
    statements: [
      `ALTER TABLE audit_sinks ADD COLUMN mailing TEXT`,
      `ALTER TABLE audit_dead_letters ADD COLUMN recipients TEXT`,
      `ALTER TABLE audit_dead_letters ADD COLUMN next_try_at TEXT NOT NULL DEFAULT ''`,
    ],
  },
  {
    number: 56,
    name: 'notifications in browsers',
    statements: [
      `CREATE TABLE push_keys (
        id TEXT PRIMARY KEY, public_key TEXT NOT NULL, sealed_private_key TEXT NOT NULL, created_at TEXT NOT NULL) STRICT`,
      // One of each signed-in browser, which ends with its session.
      `CREATE TABLE push_subscriptions (
        session_id TEXT PRIMARY KEY REFERENCES browser_sessions (id) ON DELETE CASCADE,
        user_id TEXT NOT NULL REFERENCES users (id), endpoint_hash TEXT NOT NULL UNIQUE, host TEXT NOT NULL,
        sealed TEXT NOT NULL, created_at TEXT NOT NULL, quiet_until INTEGER NOT NULL DEFAULT 0,
        failures INTEGER NOT NULL DEFAULT 0, problem TEXT) STRICT`,
      `CREATE INDEX push_subscriptions_by_user ON push_subscriptions (user_id)`,
    ],
  },
  {
    number: 57,
    name: 'MCP clients that an enterprise’s provider connects',
    statements: [
      `ALTER TABLE enterprises ADD COLUMN provider_mcp_clients TEXT NOT NULL DEFAULT '[]'`,
      `ALTER TABLE mcp_connections ADD COLUMN connected_by TEXT NOT NULL DEFAULT 'person'`,
      // Used ones are kept as long as they could be used again.
      `CREATE TABLE mcp_assertions (assertion_hash TEXT PRIMARY KEY, expires_at INTEGER NOT NULL) STRICT`,
      `CREATE INDEX mcp_assertions_by_expiry ON mcp_assertions (expires_at)`,
      // The provider connects none of these again.
      `CREATE TABLE mcp_disconnected (
        user_id TEXT NOT NULL REFERENCES users (id), client_id TEXT NOT NULL, PRIMARY KEY (user_id, client_id)) STRICT`,
    ],
  },
  {
    number: 58,
    name: 'an enterprise’s provider leaves no MCP clients behind',
    statements: [
      // An earlier worker replaces the provider, and does not know the list. This one writes the list after the provider.
      `CREATE TRIGGER provider_mcp_clients_end_with_provider AFTER DELETE ON enterprise_oidc
        BEGIN UPDATE enterprises SET provider_mcp_clients = '[]' WHERE id = OLD.enterprise_id; END`,
    ],
  },
];
