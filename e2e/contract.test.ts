import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { plantSecret } from './support/planted_secret.ts';
import { connectThroughProxy } from './support/raw_client.ts';
import { curlInSession } from './support/session_curl.ts';
import { reply } from './support/tls_upstream.ts';
import { waitFor } from './support/wait_for.ts';
import { startWorld, type World } from './support/world.ts';

// Specification section 5, Upstream credential injection: the contract is enforced before any credential is resolved.

const READ = 'read.example.test';
const ALLOWED = 'ok.wild.example.test';
const OTHER = 'other.wild.example.test';
const COUNTED = 'counted.example.test';
const WRITES = ['write', 'delete', 'spend', 'external-send'];
const hostOfEffect = (effect: string): string => `${effect}.effects.example.test`;
let world: World;

beforeAll(async () => {
  world = await startWorld([READ, ALLOWED, OTHER, COUNTED, ...WRITES.map(hostOfEffect)]);
  for (const name of ['read', 'wild', 'effects', 'counted']) await world.svc.secret(`user/${name}`, plantSecret());
  const bearer = { scheme: 'bearer' };
  await world.svc.binding({ ...bearer, host: READ, credential_ref: 'vault://user/read', effect: 'read' });
  await world.svc.binding({
    ...bearer,
    host: '*.wild.example.test',
    credential_ref: 'vault://user/wild',
    allowed_hosts: [ALLOWED],
  });
  for (const effect of WRITES) {
    await world.svc.binding({ ...bearer, host: hostOfEffect(effect), credential_ref: 'vault://user/effects', effect });
  }
});
afterAll(() => world.stop());

async function send(host: string, method: string, lines: readonly string[] = []) {
  world.upstream.reset();
  const session = await world.svc.session();
  const client = await connectThroughProxy(session, host);
  const head = [`${method} /v1/items?q=1 HTTP/1.1`, `Host: ${host}`, ...lines, '', ''].join('\r\n');
  const got = await client.exchange(head, method);
  client.close();
  await session.end();
  return { reply: got, events: await world.svc.eventsOf(session) };
}

const countReleases = async (): Promise<number> =>
  (await world.svc.events()).filter((event) => event.type === 'control.credential.released').length;

describe('a violated contract', () => {
  it.each([
    ['a host outside the allowed hosts', OTHER, 'GET', [], 'host_not_allowed'],
    ['POST under read', READ, 'POST', ['Content-Length: 0'], 'effect_not_allowed'],
    ['DELETE under read', READ, 'DELETE', [], 'effect_not_allowed'],
    ['an unknown method under read', READ, 'PURGE', [], 'effect_not_allowed'],
    ['a lower-case get under read', READ, 'get', [], 'effect_not_allowed'],
    ['an upgrade under read', READ, 'GET', ['Connection: Upgrade', 'Upgrade: websocket'], 'effect_not_allowed'],
    ['an overridden method under read', READ, 'GET', ['X-HTTP-Method-Override: DELETE'], 'effect_not_allowed'],
  ])('refuses %s with 403, records it and resolves no credential', async (_, host, method, lines, code) => {
    const { reply: got, events } = await send(host, method, lines);
    expect(got.status).toBe(403);
    expect(got.json()).toMatchObject({ error: { code } });
    expect(world.upstream.requests).toEqual([]);
    expect(events.map(({ type }) => type)).toEqual(['sandbox.proxy.trust_denied']);
    expect(events[0]?.data).toMatchObject({ 'svc.proxy.reason': code, 'svc.proxy.upstream.host': host });
    expect(await countReleases()).toBe(0);
  });
});

describe('a kept contract', () => {
  it.each(['GET', 'HEAD', 'OPTIONS'])('admits %s under read', async (method) => {
    const { reply: got, events } = await send(READ, method);
    expect(got.status).toBe(200);
    expect(events.map(({ type }) => type)).toEqual(['sandbox.proxy.binding_injected']);
    expect(await countReleases()).toBeGreaterThan(0);
  });

  it('admits a host of the allowed list', async () => {
    expect((await send(ALLOWED, 'POST', ['Content-Length: 0'])).reply.status).toBe(200);
  });

  it.each(WRITES)('admits every method under %s', async (effect) => {
    for (const method of ['GET', 'POST', 'DELETE']) {
      expect((await send(hostOfEffect(effect), method, ['Content-Length: 0'])).reply.status).toBe(200);
    }
  });
});

describe('a limit of bytes', () => {
  const request = ['-w', ' %{http_code}', `https://${COUNTED}/v1/items`];

  it('of a session refuses the next request with 429 once its replies have reached it, and cuts none off', async () => {
    await world.svc.binding({ scheme: 'bearer', host: COUNTED, credential_ref: 'vault://user/counted' });
    const body = 'x'.repeat(3000);
    world.upstream.onRequest((exchange) => exchange.write(reply(200, body)));
    const script = `curl -sS -w ' %{http_code}' https://${COUNTED}/v1/items`;
    const run = await world.svc.cli(['run', '--bytes-per-day', '2kB', '--', 'sh', '-c', `${script}; ${script}`]);
    expect(run.stdout).toMatch(new RegExp(`^${body} 200.*"code":"request_limit_reached".* 429$`, 's'));
    expect(run.stdout).toContain('this session allows 2 kB a day on this machine');
  });

  it('of a binding counts the bodies of requests too, over all sessions, and is recorded', async () => {
    await world.svc.ok(['binding', 'limit', COUNTED, '--bytes-per-day', '2kB']);
    world.upstream.reset();
    const upload = ['--data', 'x'.repeat(2000), ...request];
    const first = await curlInSession(world.svc, upload);
    expect(first.stdout).toMatch(/ 200$/);
    const second = await curlInSession(world.svc, request);
    expect(second.stdout).toMatch(/request_limit_reached.* 429$/s);
    expect(world.upstream.requests).toHaveLength(1);
    await waitFor('the refusal to be recorded', async () =>
      (await world.svc.events()).some(
        ({ type, data }) =>
          type === 'sandbox.proxy.trust_denied' && data['svc.proxy.reason'] === 'request_limit_reached',
      ),
    );
    expect(await world.svc.ok(['explain', 'GET', `https://${COUNTED}/v1/items`])).toContain('After 2 kB a day');
  });
});
