import { randomBytes } from 'node:crypto';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@libsql/client';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { auditHeadsReply } from '../../shared/wire/audit_heads.ts';
import {
  type ControlPlaneUnderTest,
  runSvc,
  startDenoAt,
  startLibsqlServer,
  startNodeAt,
  startOnWorkerd,
} from './programs.ts';
import { sampleOf } from '../support/full_counts.ts';
import { HANGS_MS } from '../support/hangs.ts';

/** A webhook like an operator's: it keeps each body that it answers with 204. */
class Receiver {
  readonly taken: string[] = [];
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        this.taken.push(Buffer.concat(chunks).toString('utf8'));
        response.writeHead(204).end();
      });
    });
  }

  async listen(): Promise<string> {
    await new Promise<void>((done) => this.#server.listen(0, '127.0.0.1', done));
    const address = this.#server.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    return `http://127.0.0.1:${port}/anchors?key=hook-password`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }
}

let home = '';
let receiver: Receiver;
let url = '';
const running: { stop(): Promise<void> }[] = [];
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-anchors-'));
  receiver = new Receiver();
  url = await receiver.listen();
  running.push(receiver);
});
afterEach(async () => {
  for (const each of running.splice(0).toReversed()) await each.stop();
  await rm(home, { recursive: true, force: true });
});

async function keepRunning<T extends ControlPlaneUnderTest>(starting: Promise<T>): Promise<T> {
  const control = await starting;
  running.push(control);
  return control;
}

async function store(control: ControlPlaneUnderTest, path: string): Promise<void> {
  const headers = { authorization: `Bearer ${control.localKey}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ path, value: 'value' });
  expect((await fetch(`${control.url}/v1/secrets`, { method: 'POST', headers, body })).status).toBe(201);
}

const waitForHeads = () =>
  vi.waitFor(() => (receiver.taken[0] === undefined ? Promise.reject(new Error('nothing came')) : receiver.taken[0]), {
    timeout: HANGS_MS,
  });

/** Runs `svc audit verify --against` with what the receiver kept. */
async function compare(control: ControlPlaneUnderTest, text: string) {
  const file = join(home, 'received.json');
  await writeFile(file, text);
  return runSvc(home, ['audit', 'verify', '--against', file], { SVC_CONTROL_URL: control.url });
}

// The code is the same on both.
const RUNTIMES: readonly [string, typeof startNodeAt | typeof startDenoAt][] = [
  ['Node', startNodeAt],
  ['Deno', startDenoAt],
];

describe.each(sampleOf(RUNTIMES, 1))('SVC_AUDIT_HEADS_URL on %s', (_, startAt) => {
  test('sends the signed heads, which prove that the database was replaced with an older copy', async () => {
    const first = await keepRunning(startAt(home, {}));
    await store(first, 'user/before');
    const database = join(home, 'control.db');
    const backup = join(home, 'backup.db');
    const client = createClient({ url: `file:${database}`, timeout: 5_000 });
    await client.execute({ sql: 'VACUUM INTO ?', args: [backup] });
    client.close();
    await store(first, 'user/after');
    await first.stop();
    const sending = await keepRunning(startAt(home, { SVC_AUDIT_HEADS_URL: url, SVC_AUDIT_HEADS_LOG: 'on' }));
    const body = await waitForHeads();
    const printed = sending.output();
    expect(auditHeadsReply.parse(JSON.parse(body)).heads.length).toBeGreaterThan(0);
    expect(body + printed).not.toContain('hook-password');
    for (const text of [body, printed]) {
      expect(await compare(sending, text)).toMatchObject({
        exitCode: 0,
        stdout: expect.stringContaining('ok: the log contains all'),
      });
    }
    await sending.stop();

    // Started again on the same day: nothing is sent twice.
    const again = await keepRunning(startAt(home, { SVC_AUDIT_HEADS_URL: url }));
    expect((await compare(again, body)).exitCode).toBe(0);
    const doctor = await runSvc(home, ['doctor', '--json'], { SVC_CONTROL_URL: again.url });
    expect(doctor.stdout).toContain('posted to SVC_AUDIT_HEADS_URL, last at ');
    await again.stop();
    expect(receiver.taken).toHaveLength(1);

    for (const name of ['control.db', 'control.db-wal', 'control.db-shm']) await rm(join(home, name), { force: true });
    await cp(backup, database);
    const restored = await keepRunning(startAt(home, {}));
    expect((await runSvc(home, ['audit', 'verify'], { SVC_CONTROL_URL: restored.url })).exitCode).toBe(0);
    expect(await compare(restored, body)).toMatchObject({
      exitCode: 1,
      stdout: expect.stringMatching(/broken\tbehind: event \d+ of ent_/),
    });
  });
});

test('two workers that start at the same time send once for the day', async () => {
  const settings = { SVC_AUDIT_HEADS_URL: url };
  const workers = await Promise.all([
    keepRunning(startNodeAt(home, settings)),
    keepRunning(startNodeAt(home, settings)),
  ]);
  await waitForHeads();
  for (const each of workers) await each.stop();
  expect(receiver.taken).toHaveLength(1);
  expect(workers.map((each) => each.output()).join('')).not.toContain('deferred work failed');
});

test("in workerd the platform's cron trigger runs it", async () => {
  const server = await startLibsqlServer();
  running.push(server);
  const settings = { SVC_VAULT_KEY: randomBytes(32).toString('base64url'), SVC_AUDIT_HEADS_URL: url };
  const control = await keepRunning(startOnWorkerd({ url: server.url }, settings));
  await writeFile(join(home, 'local.key'), `${control.localKey}\n`, { mode: 0o600 });
  for (let asked = 0; asked < 2; asked += 1) {
    const reply = await fetch(`${control.url}/cdn-cgi/handler/scheduled`);
    expect([reply.status, await reply.text()]).toEqual([200, 'ok']);
  }
  expect(receiver.taken).toHaveLength(1);
  expect((await compare(control, receiver.taken[0]!)).exitCode).toBe(0);
});
