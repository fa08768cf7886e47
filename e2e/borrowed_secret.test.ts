import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { plantSecret, searchFiles } from './support/planted_secret.ts';
import { connectThroughProxy } from './support/raw_client.ts';
import { startWorld, type World } from './support/world.ts';

// A secret that a program of this machine gives, from the consent to the request that has its value. The program stands in for
// the CLI of a provider.

const HOST = 'borrowed.example.test';
const OTHER = 'other.example.test';
const VALUE = plantSecret();
let world: World;
let folder: string;
let program: string;

beforeAll(async () => {
  world = await startWorld([HOST, OTHER]);
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-borrow-')));
  program = join(folder, 'provider');
  writeFileSync(join(folder, 'value'), VALUE);
  writeProgram(`echo run >> ${folder}/runs; cat ${folder}/value`);
});
afterAll(async () => {
  await world.stop();
  rmSync(folder, { recursive: true, force: true });
});

function writeProgram(script: string): void {
  writeFileSync(program, `#!/bin/sh\n${script}\n`);
  chmodSync(program, 0o700);
}

async function cli(args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await world.svc.cli(args);
  expect([code, stderr]).toEqual([0, '']);
  return stdout;
}

async function send(host = HOST): Promise<{ readonly status: number; readonly body: string }> {
  const session = await world.svc.session();
  const client = await connectThroughProxy(session, host);
  const { status, body } = await client.exchange(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  client.close();
  await session.end();
  return { status, body: body.data.toString() };
}

const CONSENT = ['secret', 'borrow', 'add', 'user/demo', '--host', HOST, '--scheme', 'bearer', '--yes', '--'];

it('a borrowed secret is in the requests that its consent covers, in the audit log by its program, and in no file of svc', async () => {
  await cli([...CONSENT, program]);
  for (const host of [HOST, OTHER]) {
    await world.svc.binding({ host, scheme: 'bearer', effect: 'read', credential_ref: 'vault://user/demo' });
  }
  const replies = await Promise.all(Array.from({ length: 5 }, () => send()));
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  const sent = world.upstream.requests.map((request) => request.header('authorization'));
  expect(new Set(sent)).toEqual(new Set([`Bearer ${VALUE}`]));
  expect(readFileSync(join(folder, 'runs'), 'utf8')).toBe('run\n');
  const refused = await send(OTHER);
  expect([refused.status, JSON.parse(refused.body)]).toMatchObject([403, { error: { code: 'borrow_not_consented' } }]);
  const events = await world.svc.events();
  expect(events.find(({ type }) => type === 'sandbox.proxy.credential_borrowed')?.data).toMatchObject({
    'svc.proxy.credential_ref': 'vault://user/demo',
    'svc.borrow.program': 'provider',
  });
  expect(searchFiles(world.svc.home, VALUE).holding).toEqual([]);
  expect(JSON.stringify(events)).not.toContain(VALUE);
});

it('a consent does not outlive a change of its program, and a withdrawn one is over at once', async () => {
  writeProgram(`echo other`);
  await cli([...CONSENT, program, 'other']);
  expect((await send()).status).toBe(200);
  expect(world.upstream.requests.at(-1)?.header('authorization')).toBe('Bearer other');
  await cli(['secret', 'borrow', 'rm', 'user/demo']);
  const refused = await send();
  expect([refused.status, JSON.parse(refused.body)]).toMatchObject([403, { error: { code: 'borrow_not_consented' } }]);
});
