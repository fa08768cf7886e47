import { writeFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@libsql/client';
import { getTableColumns, getTableName, is } from 'drizzle-orm';
import { SQLiteTable } from 'drizzle-orm/sqlite-core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { migrate, schemaStatus } from './migrate.ts';
import { MIGRATIONS, type Migration } from './migrations.ts';
import * as tables from './tables.ts';

const NOW = '2026-01-01T00:00:00.000Z';
/** One more than there are. */
const NEXT: Migration = {
  number: MIGRATIONS.length + 1,
  name: 'next',
  statements: ['CREATE TABLE next (id TEXT PRIMARY KEY) STRICT'],
};

let directory = '';
let file = '';
const open = () => createClient({ url: `file:${file}`, timeout: 2000 });

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-migrate-'));
  file = join(directory, 'control.db');
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const identityOf = (name: string, provider: string, at: number, email: string): string =>
  `INSERT INTO identities (provider, issuer, subject, user_id, person_id, email, email_verified, created_at,
    last_sign_in_at, id) VALUES ('${provider}', 'i', '${name}', 'usr_1', 'per_1', '${email}', 1, '${at}', '', '${name}')`;

/** Columns that no query uses any more; a worker of an earlier version still does. */
const RETIRED: Readonly<Record<string, readonly string[]>> = { approvals: ['rules'], approval_grants: ['rules'] };

describe('migrations', () => {
  test('create the tables that the queries use', async () => {
    const client = open();
    expect(await migrate(client, NOW)).toEqual({ ok: true, value: MIGRATIONS.map(({ number }) => number) });
    expect(await migrate(client, NOW)).toEqual({ ok: true, value: [] });
    const declared = Object.values(tables).filter((value) => is(value, SQLiteTable));
    expect(declared.length).toBeGreaterThan(10);
    for (const table of declared) {
      const columns = await client.execute(`SELECT name FROM pragma_table_info('${getTableName(table)}')`);
      const names = Object.values(getTableColumns(table)).map((column) => column.name);
      expect(new Set(columns.rows.map((row) => row['name']))).toEqual(
        new Set([...names, ...(RETIRED[getTableName(table)] ?? [])]),
      );
    }
    client.close();
  });

  test('count a connector that is already installed as active, and keep its credential', async () => {
    const client = open();
    await migrate(client, NOW, MIGRATIONS.slice(0, 17));
    await client.batch([
      `INSERT INTO enterprises (id, slug, name, created_at) VALUES ('ent_1', 'e', 'E', '${NOW}')`,
      `INSERT INTO connectors (id, enterprise_id, owner_id, fqn, version, title, hosts, operation_count, credential_kind,
        content_hash, spec, installed_by, created_at, updated_at)
        VALUES ('con_1', 'ent_1', 'usr_1', 'acme/items', '1', 'Items', '[]', 1, 'api_key', '', '{}', 'usr_1', '${NOW}', '${NOW}')`,
      `INSERT INTO connector_credentials (connector_id, owner_id, path, kind, state, renewable, updated_at)
        VALUES ('con_1', 'usr_1', 'connectors/acme/items', 'api_key', 'ready', 0, '${NOW}')`,
    ]);
    await migrate(client, NOW);
    const { rows } = await client.execute(
      'SELECT activated_at, path, state FROM connectors JOIN connector_credentials ON connector_id = connectors.id',
    );
    expect(rows).toMatchObject([{ activated_at: NOW, path: 'connectors/acme/items', state: 'ready' }]);
    client.close();
  });

  test("take ways to sign in for the enterprise's that its provider may have added", async () => {
    const client = open();
    await migrate(client, NOW, MIGRATIONS.slice(0, 30));
    await client.batch([
      `INSERT INTO enterprises (id, slug, name, created_at) VALUES ('ent_1', 'e', 'E', '${NOW}')`,
      `INSERT INTO people (id, verified_email, created_at) VALUES ('per_1', 'pat@acme.test', '${NOW}')`,
      `INSERT INTO users (id, enterprise_id, person_id, display_name, role, created_at)
        VALUES ('usr_1', 'ent_1', 'per_1', 'Pat', 'member', '${NOW}')`,
      identityOf('before', 'codehost', 1, 'pat@home.test'),
      identityOf('company', 'ent_1', 2, 'pat@acme.test'),
      identityOf('added', 'general', 3, 'pat@home.test'),
      identityOf('mailbox', 'password', 4, 'pat@acme.test'),
    ]);
    await migrate(client, NOW);
    await client.execute(identityOf('old worker', 'ent_1', 5, 'pat@acme.test'));
    const { rows } = await client.execute('SELECT id, vouched_by FROM identities ORDER BY created_at');
    expect(rows.map((row) => [row['id'], row['vouched_by']])).toEqual([
      ['before', null],
      ['company', 'ent_1'],
      ['added', 'ent_1'],
      ['mailbox', null],
      ['old worker', 'ent_1'],
    ]);
    client.close();
  });

  test('list every host of a connector that is already installed, and keep secrets in use', async () => {
    const client = open();
    await migrate(client, NOW, MIGRATIONS.slice(0, 18));
    const own = { hosts: ['b.test', 'c.test'] };
    const spec = JSON.stringify({ hosts: ['a.test', 'b.test'], operations: [{}, own, {}] });
    const secret = (id: string, path: string): string =>
      `INSERT INTO secrets (id, enterprise_id, owner_id, path, version, sealed, created_at, updated_at)
        VALUES ('${id}', 'ent_1', 'usr_1', '${path}', 1, '', '${NOW}', '${NOW}')`;
    await client.batch([
      `INSERT INTO enterprises (id, slug, name, created_at) VALUES ('ent_1', 'e', 'E', '${NOW}')`,
      `INSERT INTO connectors (id, enterprise_id, owner_id, fqn, version, title, hosts, operation_count, credential_kind,
        content_hash, spec, installed_by, created_at, updated_at)
        VALUES ('con_1', 'ent_1', 'usr_1', 'acme/items', '1', 'Items', '["a.test","b.test"]', 1, 'api_key', '', '${spec}',
          'usr_1', '${NOW}', '${NOW}')`,
      secret('sec_1', 'user/shared'),
      secret('sec_2', 'user/bound'),
      secret('sec_3', 'user/free'),
      secret('sec_4', 'connectors/acme/items'),
      `INSERT INTO binding_credentials (binding_id, owner_id, path) VALUES ('bnd_1', 'usr_1', 'user/bound')`,
      `INSERT INTO connector_credentials (connector_id, owner_id, path, kind, state, renewable, updated_at)
        VALUES ('con_1', 'usr_1', 'user/shared', 'api_key', 'ready', 0, '${NOW}'),
          ('con_2', 'usr_1', 'connectors/acme/items', 'api_key', 'ready', 0, '${NOW}')`,
    ]);
    await migrate(client, NOW);
    const { rows } = await client.execute('SELECT hosts FROM connectors');
    expect(rows).toMatchObject([{ hosts: '["a.test","b.test","c.test"]' }]);
    for (const id of ['sec_1', 'sec_2']) {
      await expect(client.execute(`DELETE FROM secrets WHERE id = '${id}'`)).rejects.toThrow('the secret is in use');
    }
    for (const id of ['sec_3', 'sec_4']) await client.execute(`DELETE FROM secrets WHERE id = '${id}'`);
    await client.execute(`DELETE FROM connector_credentials WHERE connector_id = 'con_1'`);
    await client.execute(`DELETE FROM secrets WHERE id = 'sec_1'`);
    const left = await client.execute('SELECT path FROM secrets');
    expect(left.rows).toMatchObject([{ path: 'user/bound' }]);
    client.close();
  });

  test('have the mirror of a registry fetched again, for the titles that it lacks', async () => {
    const client = open();
    await migrate(client, NOW, MIGRATIONS.slice(0, 20));
    await client.batch([
      `INSERT INTO registry_mirrors (id, url, synced_at, crawled_at, not_before_ms) VALUES (1, 'u', '${NOW}', '${NOW}', 9)`,
      `INSERT INTO registry_servers (registry_id, name, description, facets, state, updated_at, crawl, change)
        VALUES (1, 'a/b', 'text', 'stdio/npm', 'active', '${NOW}', 1, 1)`,
    ]);
    await migrate(client, NOW);
    const { rows } = await client.execute(
      'SELECT synced_at, crawled_at, not_before_ms, description, search_text FROM registry_mirrors, registry_servers',
    );
    const stays = { synced_at: NOW, description: 'text' };
    expect(rows).toMatchObject([{ ...stays, crawled_at: null, not_before_ms: 0, search_text: '' }]);
    client.close();
  });

  test('make each user a person, who gets its identities and its verified address', async () => {
    const client = open();
    await migrate(client, NOW, MIGRATIONS.slice(0, 26));
    const user = (id: string, address: string): string =>
      `INSERT INTO users (id, enterprise_id, display_name, role, created_at, email, verified_email)
        VALUES ('usr_${id}', 'ent_1', 'U', 'member', '${NOW}', 'shown@acme.test', ${address})`;
    const identity = (id: string): string =>
      `INSERT INTO identities (provider, issuer, subject, user_id, email, email_verified, created_at, last_sign_in_at, id)
        VALUES ('codehost', 'i', '${id}', 'usr_${id}', 'e', 1, '${NOW}', '${NOW}', 'idn_${id}')`;
    await client.batch([
      `INSERT INTO enterprises (id, slug, name, created_at) VALUES ('ent_1', 'e', 'E', '${NOW}')`,
      user('1', `'alice@acme.test'`),
      user('2', 'NULL'),
      identity('1'),
      identity('2'),
    ]);
    await migrate(client, NOW);
    const { rows } = await client.execute(
      `SELECT users.id AS user, users.email AS email, people.verified_email AS verified, identities.id AS identity
        FROM users JOIN people ON people.id = users.person_id JOIN identities ON identities.person_id = people.id
        ORDER BY users.id`,
    );
    expect(rows).toMatchObject([
      { user: 'usr_1', email: 'shown@acme.test', verified: 'alice@acme.test', identity: 'idn_1' },
      { user: 'usr_2', email: 'shown@acme.test', verified: null, identity: 'idn_2' },
    ]);
    client.close();
  });

  test('let a worker of the previous version add people, sign them in and see those of this version', async () => {
    const client = open();
    await migrate(client, NOW);
    const user = (id: string, person: string, address: string): string =>
      `INSERT INTO users (id, enterprise_id, display_name, role, created_at, person_id, verified_email)
        VALUES ('usr_${id}', 'ent_${id}', 'U', 'member', '${NOW}', ${person}, ${address})`;
    const people = `INSERT INTO people (id, verified_email, created_at)
      VALUES ('per_new', 'new@acme.test', '${NOW}'), ('per_late', NULL, '${NOW}')`;
    await client.batch([
      ...['1', '2', '3', '4', '5'].map(
        (id) => `INSERT INTO enterprises (id, slug, name, created_at) VALUES ('ent_${id}', '${id}', 'E', '${NOW}')`,
      ),
      user('1', 'NULL', `'old@acme.test'`),
      user('2', 'NULL', 'NULL'),
      `UPDATE users SET verified_email = 'claimed@acme.test' WHERE id = 'usr_2'`,
      `INSERT INTO identities (provider, issuer, subject, user_id, email, email_verified, created_at, last_sign_in_at, id)
        VALUES ('codehost', 'i', '1', 'usr_1', 'e', 1, '${NOW}', '${NOW}', 'idn_1')`,
      people,
      user('3', `'per_new'`, 'NULL'),
      user('4', `'per_new'`, 'NULL'),
      user('5', `'per_late'`, 'NULL'),
      `UPDATE people SET verified_email = 'late@acme.test' WHERE id = 'per_late'`,
    ]);
    const { rows } = await client.execute(
      `SELECT users.id || ' ' || person_id || ' ' || coalesce(users.verified_email, '-') || ' ' || people.verified_email AS line
        FROM users JOIN people ON people.id = users.person_id ORDER BY users.id`,
    );
    expect(rows.map(({ line }) => line)).toEqual([
      'usr_1 per_1 old@acme.test old@acme.test',
      'usr_2 per_2 claimed@acme.test claimed@acme.test',
      'usr_3 per_new new@acme.test new@acme.test',
      'usr_4 per_new - new@acme.test',
      'usr_5 per_late late@acme.test late@acme.test',
    ]);
    const identity = await client.execute('SELECT person_id FROM identities');
    expect(identity.rows).toMatchObject([{ person_id: 'per_1' }]);
    client.close();
  });

  test('are numbered from 1 without a gap', () => {
    expect(MIGRATIONS.map((migration) => migration.number)).toEqual(MIGRATIONS.map((_, index) => index + 1));
  });

  test('apply only missing steps', async () => {
    const client = open();
    await migrate(client, NOW);
    await migrate(client, NOW, [...MIGRATIONS, NEXT]);
    expect(await migrate(client, NOW, [...MIGRATIONS, NEXT])).toMatchObject({ ok: true });
    const rows = await client.execute('SELECT number FROM schema_migrations ORDER BY number');
    expect(rows.rows.map((row) => row['number'])).toEqual([...MIGRATIONS, NEXT].map((migration) => migration.number));
    client.close();
  });

  test('succeed in two programs that start at once', async () => {
    const clients = Array.from({ length: 4 }, open);
    const results = await Promise.all(clients.map((client) => migrate(client, NOW)));
    const applied = results.flatMap((result) => (result.ok ? result.value : []));
    expect(applied.toSorted((a, b) => a - b)).toEqual(MIGRATIONS.map(({ number }) => number));
    for (const client of clients) client.close();
  });

  test("report the database's version without changing anything", async () => {
    const client = open();
    expect(await schemaStatus(client)).toMatchObject({ schema: 0, pending: MIGRATIONS.length, refusal: null });
    await migrate(client, NOW);
    const behind = await schemaStatus(client, [...MIGRATIONS, NEXT]);
    expect(behind).toMatchObject({ schema: MIGRATIONS.length, pending: 1, refusal: null });
    expect(behind.steps.slice(-2)).toMatchObject([{ applied_at: NOW }, { name: 'next', applied_at: null }]);
    await migrate(client, NOW, [...MIGRATIONS, NEXT]);
    const ahead = await schemaStatus(client);
    expect(ahead).toMatchObject({ schema: NEXT.number, pending: 0, refusal: { reason: 'database_newer' } });
    client.close();
  });

  test('leave nothing behind if a step fails', async () => {
    const client = open();
    await migrate(client, NOW);
    const broken = { ...NEXT, statements: [...NEXT.statements, 'CREATE TABLE nonsense ('] };
    await expect(migrate(client, NOW, [...MIGRATIONS, broken])).rejects.toThrow('incomplete input');
    expect(await migrate(client, NOW, [...MIGRATIONS, NEXT])).toMatchObject({ ok: true });
    client.close();
  });

  test('leave an empty database empty if one of its steps fails', async () => {
    const client = open();
    const broken = { ...NEXT, statements: ['CREATE TABLE nonsense ('] };
    await expect(migrate(client, NOW, [...MIGRATIONS, broken])).rejects.toThrow('incomplete input');
    expect((await client.execute('SELECT name FROM sqlite_schema')).rows).toEqual([]);
    expect(await migrate(client, NOW)).toMatchObject({ ok: true });
    client.close();
  });

  test('refuse a database of a newer version', async () => {
    const client = open();
    await migrate(client, NOW, [...MIGRATIONS, NEXT]);
    expect(await migrate(client, NOW)).toMatchObject({ ok: false, error: { reason: 'database_newer' } });
    client.close();
  });

  test('refuse a step whose text has changed', async () => {
    const client = open();
    await migrate(client, NOW, [...MIGRATIONS, NEXT]);
    const changed = { ...NEXT, statements: ['CREATE TABLE other (id TEXT) STRICT'] };
    expect(await migrate(client, NOW, [...MIGRATIONS, changed])).toMatchObject({
      error: { reason: 'migration_changed' },
    });
    client.close();
  });

  test('refuse a file that is not a database, and leave it unchanged', async () => {
    const garbage = 'this is not a database, '.repeat(400);
    writeFileSync(file, garbage);
    const refused = await Promise.resolve()
      .then(() => migrate(open(), NOW))
      .catch((error: unknown) => error);
    expect(refused).toMatchObject({ error: { reason: 'database_damaged' } });
    expect(await readFile(file, 'utf8')).toBe(garbage);
  });
});
