import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type NodeUnderTest, refusalOfNode, startNodeAt } from './programs.ts';
import { TestSidecar } from './sidecar_client.ts';
import { ONLY_FULL, sampleOf } from '../support/full_counts.ts';
import { HANGS_MS } from '../support/hangs.ts';

let home = '';
beforeEach(async () => {
  home = join(await mkdtemp(join(tmpdir(), 'svc-entry-')), 'a home #1?%20é');
});
afterEach(() => rm(join(home, '..'), { recursive: true, force: true }));

const newKey = () => randomBytes(32).toString('base64url');
async function storeSecret(): Promise<void> {
  const control = await startNodeAt(home);
  const reply = await fetch(`${control.url}/v1/secrets`, {
    method: 'POST',
    headers: { authorization: `Bearer ${control.localKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ path: 'user/demo', value: 'the value' }),
  });
  expect(reply.status).toBe(201);
  await control.stop();
}
async function storedPaths(): Promise<unknown> {
  const control = await startNodeAt(home);
  const reply = await fetch(`${control.url}/v1/secrets`, { headers: { authorization: `Bearer ${control.localKey}` } });
  await control.stop();
  return reply.json();
}

const readRefusal = async (args: string[], settings = {}) => (await refusalOfNode(home, { args, settings })).log;

describe('the control worker on Node', () => {
  test('keeps its state private and in one file, and has it again after a restart', async () => {
    await storeSecret();
    const log = await stat(join(home, 'control.db-wal')).catch(() => null);
    expect(log?.size ?? 0).toBe(0);
    expect((await readFile(join(home, 'control.db'))).includes('user/demo')).toBe(true);
    expect((await stat(home)).mode & 0o777).toBe(0o700);
    for (const file of await readdir(home))
      expect([file, (await stat(join(home, file))).mode & 0o777]).toEqual([file, 0o600]);
    expect(await storedPaths()).toMatchObject({ items: [{ path: 'user/demo' }] });
  });

  test('two that start at the same time on a new home share one key', async () => {
    const both = await Promise.all([startNodeAt(home), startNodeAt(home)]);
    expect(new Set(both.map((control) => control.localKey)).size).toBe(1);
    await Promise.all(both.map((control) => control.stop()));
    expect(await storedPaths()).toMatchObject({ items: [] });
  });

  // Of svc up, these refusals are in e2e/bad_state.test.ts.
  test.each(ONLY_FULL)('refuses a wrong or missing vault key, and does not change the data%s', async () => {
    await storeSecret();
    const wrong = await refusalOfNode(home, { settings: { SVC_VAULT_KEY: newKey() } });
    expect(wrong).toMatchObject({ exitCode: 1, log: { code: 'wrong_vault_key' } });
    await rename(join(home, 'vault.key'), join(home, '..', 'kept.key'));
    expect(await refusalOfNode(home)).toMatchObject({ exitCode: 1, log: { code: 'missing_vault_key' } });
    expect(await readdir(home)).not.toContain('vault.key');
    await rename(join(home, '..', 'kept.key'), join(home, 'vault.key'));
    expect(await storedPaths()).toMatchObject({ items: [{ path: 'user/demo' }] });
  });

  const damages = [
    ['local.key', 'local_key_damaged'],
    ['vault.key', 'vault_key_damaged'],
    ['control.db', 'database_damaged'],
  ] as const;
  test.each(sampleOf(damages, 1))('refuses a damaged %s and does not change it', async (file, code) => {
    await storeSecret();
    await Promise.all(['control.db-wal', 'control.db-shm'].map((name) => rm(join(home, name), { force: true })));
    await writeFile(join(home, file), 'damaged '.repeat(1000));
    expect(await refusalOfNode(home)).toMatchObject({ exitCode: 1, log: { level: 'error', code } });
    expect(await readFile(join(home, file), 'utf8')).toBe('damaged '.repeat(1000));
  });

  test('says which flag or setting is wrong', async () => {
    expect(await readRefusal(['--port', '70000'])).toMatchObject({ code: 'invalid_flag' });
    expect(await readRefusal(['--listen', '0.0.0.0'])).toMatchObject({ code: 'invalid_flag' });
    expect(await readRefusal(['--nonsense'])).toMatchObject({ code: 'invalid_flag' });
    expect(await readRefusal([], { SVC_VAULT_KEY: 'short' })).toMatchObject({ code: 'invalid_setting' });
  });

  test.each(ONLY_FULL)('refuses a port that is taken, by name%s', async () => {
    const control = await startNodeAt(home);
    const { port } = new URL(control.url);
    expect(await refusalOfNode(home, { args: ['--port', port] })).toMatchObject({
      exitCode: 3,
      log: { code: 'port_taken' },
    });
    await control.stop();
  });
});

describe('a control worker on Node that serves', () => {
  let control: NodeUnderTest;
  let place: string;
  beforeAll(async () => {
    place = await mkdtemp(join(tmpdir(), 'svc-entry-'));
    control = await startNodeAt(place);
  });
  afterAll(() => rm(place, { recursive: true, force: true }));

  test.each([
    ['with its length', 'content-length: 12582912', 'authorization: Bearer KEY'],
    ['in chunks', 'transfer-encoding: chunked', 'authorization: Bearer KEY'],
    ['as an unknown caller', 'content-length: 12582912', 'x-other: 1'],
  ])('lets a client that sends 12 MiB %s before it reads finish, and explains the refusal', async (_, length, who) => {
    const socket = connect(Number(new URL(control.url).port), '127.0.0.1');
    const { host } = new URL(control.url);
    const head = ['POST /v1/secrets HTTP/1.1', `host: ${host}`, length, who.replace('KEY', control.localKey)];
    socket.write(`${[...head, 'content-type: application/json', 'connection: close'].join('\r\n')}\r\n\r\n`);
    const mebibyte = 'x'.repeat(1024 * 1024);
    const part = length.startsWith('transfer') ? `100000\r\n${mebibyte}\r\n` : mebibyte;
    for (let n = 0; n < 12; n += 1) if (!socket.write(part)) await once(socket, 'drain');
    if (part !== mebibyte) socket.write('0\r\n\r\n');
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 413 [^]*"body_too_large"/);
  });

  test('answers a client that closes after a rejected body that it may still send', async () => {
    const socket = connect(Number(new URL(control.url).port), '127.0.0.1');
    const { host } = new URL(control.url);
    const body = 'x'.repeat(1024 * 1024);
    const head = ['POST /v1/secrets HTTP/1.1', `host: ${host}`, `content-length: ${body.length}`, 'connection: close'];
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    for (let at = 0; at < body.length; at += 65_536) {
      socket.write(body.slice(at, at + 65_536));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 401 /);
  });

  test('frees the slot of an audit stream when its reader leaves', async () => {
    const headers = { authorization: `Bearer ${control.localKey}` };
    const open = (signal: AbortSignal) => fetch(`${control.url}/v1/audit-events/stream`, { headers, signal });
    const gone = new AbortController();
    const streams = await Promise.all(Array.from({ length: 32 }, () => open(gone.signal)));
    expect(streams.map(({ status }) => status)).toEqual(Array(32).fill(200));
    expect((await open(AbortSignal.timeout(60_000))).status).toBe(429);
    gone.abort();
    const last = new AbortController();
    await vi.waitFor(async () => expect((await open(last.signal)).status).toBe(200), {
      timeout: HANGS_MS,
      interval: 50,
    });
    last.abort();
  });

  test('stops at once on a signal, also while a sidecar waits for its snapshot', async () => {
    const sidecar = await TestSidecar.make((path, init) => fetch(control.url + path, init));
    await sidecar.enrol(control.localKey);
    const waiting = sidecar
      .call('GET', '/v1/sidecar/snapshot?wait=25', { headers: { 'if-none-match': '"0"' } })
      .catch(() => null);
    const begun = Date.now();
    await control.stop();
    expect(control.exitCode()).toBe(0);
    // The sidecar would wait for 25 seconds.
    expect(Date.now() - begun).toBeLessThan(20_000);
    expect((await waiting)?.status ?? 304).toBe(304);
  });
});
