import { createHash, X509Certificate } from 'node:crypto';
import { type Server as TlsServer, createServer } from 'node:https';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { listen } from '../machine/connection/listen.ts';
import { plantSecret } from './support/planted_secret.ts';
import { Svc } from './support/svc.ts';
import { createTestCa, type TestCa } from './support/test_ca.ts';

// curl with the key of the host's own certificate pinned, through the real proxy.

const PINNED = 'pinned.example.test';
const BOUND = 'bound.example.test';
const TOKEN = plantSecret();

let ca: TestCa;
let upstream: TlsServer;
let svc: Svc;
let pin: string;
const seen: (string | undefined)[] = [];

beforeAll(async () => {
  ca = await createTestCa();
  const issued = await ca.issue([PINNED, BOUND]);
  upstream = createServer(issued, (request, response) => {
    seen.push(request.headers.authorization);
    response.end('hello');
  });
  const port = await listen(upstream, 0, '127.0.0.1');
  const key = new X509Certificate(issued.cert).publicKey.export({ type: 'spki', format: 'der' });
  pin = `sha256//${createHash('sha256').update(key).digest('base64')}`;
  const resolve = [PINNED, BOUND].map((host) => `${host}:127.0.0.1:${port}`);
  svc = await Svc.up({ upstreamCaFiles: [ca.file], resolve });
  await svc.secret('user/api', TOKEN);
  await svc.binding({ host: BOUND, scheme: 'bearer', credential_ref: 'vault://user/api' });
});
afterAll(async () => {
  await svc.stop();
  upstream.close();
});

/** A client that trusts nothing but its own root and its pinned key. */
const curl = (host: string) =>
  svc.cli(['run', '--', 'curl', '-sS', '--cacert', ca.file, '--pinnedpubkey', pin, `https://${host}/secret-path`]);

it('a client that pins fails, its run ends with the command, and after the command it works unread', async () => {
  const refused = await curl(PINNED);
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain(`svc tunnel add ${PINNED}`);
  await svc.ok(['tunnel', 'add', PINNED]);
  const carried = await curl(PINNED);
  expect([carried.code, carried.stdout]).toEqual([0, 'hello']);
  expect(carried.stderr).not.toContain('svc tunnel add');
  const events = (await svc.events()).filter(({ data }) => data['svc.proxy.upstream.host'] === PINNED);
  expect(events.map(({ type, data }) => [type, data['svc.proxy.reason']])).toEqual([
    ['sandbox.proxy.rejected', 'client_refused_certificate'],
    ['sandbox.proxy.tunnelled', 'tunnel_opened'],
    ['sandbox.proxy.tunnelled', 'tunnel_closed'],
  ]);
  expect(Number(events[2]?.data['svc.proxy.bytes.received'])).toBeGreaterThan('hello'.length);
  expect(JSON.stringify(events)).not.toContain('secret-path');
});

it('a host with a binding is not tunnelled, its run names no such command, and one that gets a binding is intercepted', async () => {
  const refused = await curl(BOUND);
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).not.toContain('svc tunnel add');
  const added = await svc.cli(['tunnel', 'add', BOUND]);
  expect([added.code, added.stderr]).toEqual([1, expect.stringContaining(`svc binding rm ${BOUND}`)]);
  await svc.binding({ host: PINNED, scheme: 'bearer', credential_ref: 'vault://user/api' });
  expect(await svc.ok(['run', '--', 'curl', '-sS', `https://${PINNED}/`])).toBe('hello');
  expect(seen.at(-1)).toBe(`Bearer ${TOKEN}`);
});

it('a host that is removed is intercepted again', async () => {
  await svc.ok(['tunnel', 'rm', PINNED]);
  expect(JSON.parse(await svc.ok(['tunnel', 'list', '--json']))).toMatchObject({ items: [] });
});
