import { createHash, randomBytes } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@libsql/client';
import { importJWK, SignJWT } from 'jose';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { sampleOf } from './support/full_counts.ts';
import { plantSecret } from './support/planted_secret.ts';
import { type Finished, run, SVC } from './support/program.ts';
import { readRunFile, Svc } from './support/svc.ts';
import { listen } from './support/tls_upstream.ts';

// Bad state under $SVC_HOME and a bad environment at start: a clear refusal, nothing is lost, and it starts again once
// fixed.

const SECRET = plantSecret();
/** A home with one secret after a clean stop; each test works on a copy. */
const template = mkdtempSync(join(tmpdir(), 'svc-e2e-template-'));
let home: string;

beforeAll(async () => {
  const svc = await Svc.up({ home: template });
  await svc.secret('user/demo', SECRET);
  await svc.stop();
});
afterAll(() => rmSync(template, { recursive: true, force: true }));
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-e2e-state-'));
  cpSync(template, home, { recursive: true, preserveTimestamps: true });
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

/** A start that is expected to refuse. */
function up(
  env: Readonly<Record<string, string>> = {},
  flags: readonly string[] = [],
  place = home,
): Promise<Finished> {
  const ports = ['--control-port', '0', '--proxy-port', '0'];
  return run(SVC, ['up', '--home', place, ...ports, ...flags], { env });
}

/** A refusal to start, as seen from outside. */
function describeStart(done: Finished) {
  const said = done.stdout + done.stderr;
  return {
    refused: done.code !== 0 && done.code !== null,
    said,
    trace: /\n\s+at .*\(/.test(said),
    left: readRunFile(home),
  };
}

/** It was refused for that reason, with a plain message, and nothing is left running. */
function refusal(message: RegExp) {
  return { refused: true, said: expect.stringMatching(message), trace: false, left: undefined };
}

/** The paths of the stored secrets, from a start that succeeds. */
async function secretsAfterStart(): Promise<string> {
  const svc = await Svc.up({ home });
  const listed = await svc.ok(['secret', 'list', '--json']);
  await svc.stop();
  return listed;
}

const digest = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

describe('the vault key, the database and the identity', () => {
  it('are refused if the vault key is another, missing or damaged, and start again once it is fixed', async () => {
    const file = join(home, 'vault.key');
    const text = readFileSync(file, 'utf8');
    expect(describeStart(await up({ SVC_VAULT_KEY: randomBytes(32).toString('base64url') }))).toEqual(
      refusal(/vault key|SVC_VAULT_KEY/i),
    );

    const done = await up({ SVC_VAULT_KEY: 'not-a-vault-key' });
    expect(describeStart(done)).toEqual(refusal(/SVC_VAULT_KEY/));
    expect(done.stdout + done.stderr).not.toContain('not-a-vault-key');

    renameSync(file, join(home, 'elsewhere'));
    expect(describeStart(await up())).toEqual(refusal(/vault\.key|vault key/i));
    expect(existsSync(file)).toBe(false);
    renameSync(join(home, 'elsewhere'), file);

    writeFileSync(file, 'garbage');
    expect(describeStart(await up())).toEqual(refusal(/vault\.key|vault key/i));
    expect(readFileSync(file, 'utf8')).toBe('garbage');
    writeFileSync(file, text);

    expect(await secretsAfterStart()).toContain('user/demo');
  });

  it('are refused by name if the database or the identity is damaged, and left unchanged', async () => {
    const identityFile = join(home, 'sidecar', 'identity.json');
    writeFileSync(identityFile, '{"version": 1, "half');
    const damagedIdentity = digest(identityFile);
    expect(describeStart(await up())).toEqual(refusal(/identity\.json/));
    expect(digest(identityFile)).toBe(damagedIdentity);

    const database = join(home, 'control.db');
    for (const name of ['control.db-wal', 'control.db-shm']) rmSync(join(home, name), { force: true });
    writeFileSync(database, randomBytes(20_000));
    const damagedDatabase = digest(database);
    expect(describeStart(await up())).toEqual(refusal(/database.*damaged/));
    expect(digest(database)).toBe(damagedDatabase);

    cpSync(template, home, { recursive: true, force: true });
    expect(await secretsAfterStart()).toContain('user/demo');
  });
});

describe('a database of a newer version', () => {
  it('is refused with both schemas, and left unchanged', async () => {
    const file = join(home, 'control.db');
    const client = createClient({ url: `file:${file}` });
    const { rows } = await client.execute('SELECT max(number) AS newest FROM schema_migrations');
    const newest = Number(rows[0]?.['newest']);
    const step = `INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (${newest + 1}, 'of the next version', 'x', '2027-01-01T00:00:00Z')`;
    await client.execute(step);
    // The next one to close the database would write the log into the file.
    await client.execute('PRAGMA wal_checkpoint(TRUNCATE)');
    client.close();
    const before = readFileSync(file);
    expect(describeStart(await up())).toEqual(
      refusal(
        new RegExp(
          `the database has schema ${newest + 1} and this version of svc knows ${newest}: start the newer version`,
        ),
      ),
    );
    expect(readFileSync(file).equals(before)).toBe(true);
    const again = createClient({ url: `file:${file}` });
    await again.execute(`DELETE FROM schema_migrations WHERE number = ${newest + 1}`);
    again.close();
    expect(await secretsAfterStart()).toContain('user/demo');
  });
});

describe('the audit log', () => {
  const damages: [string, string][] = [
    ['changed', "UPDATE audit_events SET data = replace(data, 'user/demo', 'user/none')"],
    ['removed from the middle', 'DELETE FROM audit_events WHERE position = (SELECT min(position) FROM audit_events)'],
    ['removed from the end', 'DELETE FROM audit_events WHERE position = (SELECT max(position) FROM audit_events)'],
  ];
  it.each(sampleOf(damages, 1))('with an event %s in the database is found by svc audit verify', async (_, sql) => {
    const client = createClient({ url: `file:${join(home, 'control.db')}` });
    const { rowsAffected } = await client.execute(sql);
    client.close();
    expect(rowsAffected).toBeGreaterThan(0);
    const svc = await Svc.up({ home });
    const done = await svc.cli(['audit', 'verify']);
    await svc.stop();
    expect(done.code).toBe(1);
    expect(done.stdout + done.stderr).toMatch(/evt_|sequence|chain|missing|changed/i);
  });
});

describe('the state of the sidecar, and a left-over run.json', () => {
  const left: [string, string][] = [
    [
      'of processes that have ended',
      JSON.stringify({
        control_url: 'http://127.0.0.1:1',
        proxy_url: 'http://127.0.0.1:2',
        control_pid: 4_000_001,
        sidecar_pid: 4_000_002,
        version: '4.0.0',
        started_at: '2026-01-01T00:00:00.000Z',
      }),
    ],
    ['garbage', 'garbage'],
  ];
  it.each(sampleOf(left, 1))(
    '%s do not stop a start: a damaged snapshot is fetched again, a damaged line of the spool loses only that line, and the CLI ignores the run.json',
    async (_, text) => {
      writeFileSync(join(home, 'sidecar', 'snapshot.jws'), 'garbage');
      const spool = join(home, 'sidecar', 'spool', '000000000001.jsonl');
      writeFileSync(spool, '{"garbage\n', { mode: 0o600 });
      writeFileSync(join(home, 'run.json'), text);
      const list = await run(SVC, ['secret', 'list'], { env: { SVC_HOME: home } });
      expect(list.code).toBe(3);
      expect(await secretsAfterStart()).toContain('user/demo');
    },
  );
});

describe('a start that is impossible', () => {
  it('because a port is taken names the port and its flag', async () => {
    const server = createServer();
    const port = await listen(server);
    for (const flag of ['--control-port', '--proxy-port']) {
      expect({ flag, ...describeStart(await up({}, [flag, String(port)])) }).toEqual({
        flag,
        ...refusal(new RegExp(`${port}`)),
      });
    }
    await new Promise((resolve) => server.close(resolve));
  });

  const wrong: [string, Record<string, string>, string[], RegExp][] = [
    ['a setting', { SVC_MAX_HEAD_BYTES: 'lots' }, [], /SVC_MAX_HEAD_BYTES/],
    ['a flag', {}, ['--proxyport', '1'], /--proxyport/],
    ['a port', {}, ['--control-port', '99999'], /99999/],
    ['a file of roots that does not exist', {}, ['--upstream-ca', '/nonexistent/ca.pem'], /\/nonexistent\/ca\.pem/],
    ['a --resolve', {}, ['--resolve', 'no-address'], /no-address/],
  ];
  it.each(sampleOf(wrong, 2))('because %s is wrong names it', async (_, env, flags, message) => {
    expect(describeStart(await up(env, flags))).toEqual(refusal(message));
  });

  it('because a file of roots contains no certificate names it', async () => {
    const file = join(home, 'empty.pem');
    writeFileSync(file, 'no certificate\n');
    expect(describeStart(await up({}, ['--upstream-ca', file]))).toEqual(refusal(/empty\.pem/));
  });
});

describe('the CLI without a running svc', () => {
  const commands = [
    ['secret', 'list'],
    ['run', '--', 'true'],
    ['binding', 'list'],
    ['audit', 'list'],
    ['api', 'GET', '/v1/me'],
  ];
  it.each(sampleOf(commands, 2))('%s %s says what to start', async (...args) => {
    const done = await run(SVC, args, { env: { SVC_HOME: home } });
    expect(done.code).toBe(args[0] === 'run' ? 125 : 3);
    expect(done.stderr).toMatch(/svc up|npm start/);
  });
});

const identity = z.object({
  sidecar_id: z.string(),
  control_plane_id: z.string(),
  signing_key: z.object({ kty: z.string(), crv: z.string(), x: z.string(), d: z.string() }),
});
const skewReply = z.object({
  error: z.object({ code: z.string(), message: z.string(), details: z.object({ server_time: z.string() }) }),
});

async function call(svc: Svc, change: { skewSeconds?: number; target?: string; audience?: string }): Promise<Response> {
  const text: unknown = JSON.parse(readFileSync(join(svc.home, 'sidecar', 'identity.json'), 'utf8'));
  const { sidecar_id, control_plane_id, signing_key } = identity.parse(text);
  const now = Math.floor(Date.now() / 1000) + (change.skewSeconds ?? 0);
  const target = '/v1/sidecar/snapshot';
  const token = await new SignJWT({
    htm: 'GET',
    htu: change.target ?? target,
    bd: createHash('sha256').digest('base64url'),
  })
    .setProtectedHeader({ alg: 'EdDSA', typ: 'svc-sidecar+jwt' })
    .setIssuer(sidecar_id)
    .setAudience(change.audience ?? control_plane_id)
    .setJti(randomBytes(16).toString('base64url'))
    .setIssuedAt(now)
    .setExpirationTime(now + 30)
    .sign(await importJWK(signing_key, 'EdDSA'));
  return fetch(`${svc.runFile.control_url}${target}`, { headers: { authorization: `Bearer ${token}` } });
}

describe('beside a running svc', () => {
  let svc: Svc;
  const used = mkdtempSync(join(tmpdir(), 'svc-e2e-used-'));
  beforeAll(async () => {
    cpSync(template, used, { recursive: true, preserveTimestamps: true });
    svc = await Svc.up({ home: used });
  });
  afterAll(async () => {
    await svc.stop();
    rmSync(used, { recursive: true, force: true });
  });

  it('another start on the same home names it and leaves it alone', async () => {
    const second = await up({}, [], used);
    expect(second.code).toBeGreaterThan(0);
    expect(second.stderr + second.stdout).toMatch(/already|running/i);
    expect(readRunFile(used)).toEqual(svc.runFile);
    expect((await svc.api('GET', '/v1/me')).status).toBe(200);
  });

  it("a manual call in the sidecar's name is refused if its clock, target or audience is wrong, and the clock error has the time", async () => {
    expect((await call(svc, {})).status).toBe(200);
    for (const skewSeconds of [-180, 180]) {
      const before = Date.now();
      const skewed = await call(svc, { skewSeconds });
      expect(skewed.status).toBe(401);
      const { error } = skewReply.parse(await skewed.json());
      expect(error.code).toBe('clock_skew');
      const serverTime = Date.parse(error.details.server_time);
      expect(serverTime).toBeGreaterThanOrEqual(before - 1_000);
      expect(serverTime).toBeLessThanOrEqual(Date.now());
    }
    for (const change of [{ target: '/v1/sidecar/credentials' }, { audience: 'cpl_00000000000000000000000000' }]) {
      const refused = await call(svc, change);
      expect(refused.status).toBe(401);
      expect(await refused.json()).toMatchObject({ error: { code: 'invalid_sidecar_call' } });
    }
  });
});
