import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { hostOnPort } from '../../shared/net/host_port.ts';
import { allowedHosts } from '../../shared/resolve/admitted_host.ts';
import { StepScope } from '../session/step_scope.ts';
import { tokenHash } from '../session/token.ts';
import { createAnswering, type DataPlane, onlyInHttp1, readUntil, startDataPlane } from '../testing/data_plane.ts';
import { checkReach } from '../tunnel/sealed_reach.ts';

const HOST = 'api.example.test';
const PORTED = `${HOST}:8443`;
const SECRET = 'planted-secret-0123456789';
const OTHER_SECRET = 'planted-secret-of-port-443';
const REPLY = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi';

let plane: DataPlane;
/** What each port of the host received. */
let seen: Record<string, string[]>;

beforeEach(async () => {
  plane = await startDataPlane();
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, SECRET);
  plane.credentials.set({ owner: 'personal', path: 'user/other' }, OTHER_SECRET);
  plane.policy.use([]);
  seen = {};
  for (const host of [HOST, PORTED, `${HOST}:9443`]) {
    const requests: string[] = (seen[host] = []);
    await plane.upstream(
      host,
      createAnswering((request) => (requests.push(request), REPLY)),
    );
  }
});

afterEach(async () => {
  expect(plane.errors).toEqual([]);
  await plane.stop();
});

/** Asks in a tunnel to `host`; gives the reply, or the refusal of the CONNECT. */
async function ask(host: string, given?: string, named = host): Promise<string> {
  const client = await plane.open(host, HOST, given);
  client.write(`GET /a HTTP/1.1\r\nHost: ${named}\r\n\r\n`);
  return readUntil(client, (got) => /(?:hi|\}\n?)$/.test(got));
}

function connectTo(target: string, given = plane.token): Promise<string> {
  const basic = Buffer.from(`ses_test:${given}`).toString('base64');
  return plane.raw(`CONNECT ${target} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic ${basic}\r\n\r\n`, (got) =>
    /^HTTP\/1\.1 200|\}\n$/.test(got),
  );
}

describe('another port than 443', () => {
  test.each([22, 80, 8443, 65_535])('is refused where nothing names it: %d', async (port) => {
    plane.policy.use([bearerBinding(HOST)]);
    const refusal = await connectTo(`${HOST}:${port}`);
    expect(refusal).toMatch(/^HTTP\/1\.1 403 .*"connect_port_not_allowed"/s);
    const way = `--allow ${HOST}:${port} for a new session, or svc allow ${HOST}:${port} for all`;
    expect(refusal.includes(way)).toBe(port !== 80);
    expect(plane.audit.events).toMatchObject([
      {
        type: 'sandbox.proxy.rejected',
        data: { 'svc.proxy.reason': 'connect_port_not_allowed', 'svc.proxy.upstream.host': `${HOST}:${port}` },
      },
    ]);
    expect(plane.credentials.asked).toEqual([]);
  });

  test('of an address in a private range is refused, with no way to allow it', async () => {
    const refusal = await connectTo('127.0.0.1:8443');
    expect(refusal).toMatch(/"connect_port_not_allowed"/);
    expect(refusal).not.toContain('svc allow');
  });

  test('has the credential of its own binding, and port 443 has its own', async () => {
    const other = {
      ...bearerBinding(HOST),
      id: 'bnd_other',
      credential: { owner: 'personal', path: 'user/other' },
    } as const;
    plane.policy.use([bearerBinding(PORTED), other]);
    expect(await ask(PORTED)).toBe(REPLY);
    expect(await ask(HOST)).toBe(REPLY);
    expect(seen[PORTED]).toEqual([expect.stringContaining(`Authorization: Bearer ${SECRET}`)]);
    expect(seen[PORTED]?.[0]).toMatch(new RegExp(`Host: ${PORTED}\r\n`, 'i'));
    expect(seen[HOST]).toEqual([expect.stringContaining(`Authorization: Bearer ${OTHER_SECRET}`)]);
    expect(plane.audit.events).toMatchObject([
      { data: { 'svc.proxy.upstream.host': PORTED, 'svc.proxy.binding.host': PORTED } },
      { data: { 'svc.proxy.upstream.host': HOST, 'svc.proxy.binding.host': HOST } },
    ]);
  });

  test('is not served by a binding for the host, also if the session may reach it', async () => {
    plane.policy.use([bearerBinding(HOST), bearerBinding(`*.example.test`), bearerBinding(`${HOST}:9443`)]);
    plane.scopes.set('ports', { ...plane.session, otherPorts: allowedHosts([PORTED], []) });
    expect(await ask(PORTED, 'ports')).toBe(REPLY);
    expect(seen[PORTED]?.[0]).not.toContain('Authorization');
    expect(plane.credentials.asked).toEqual([]);
    expect(plane.audit.events).toMatchObject([
      { type: 'sandbox.proxy.passthrough', data: { 'svc.proxy.upstream.host': PORTED } },
    ]);
  });

  test('of a binding does not serve port 443', async () => {
    plane.policy.use([bearerBinding(PORTED), bearerBinding('*.example.test:8443')]);
    expect(await ask(HOST)).toBe(REPLY);
    expect(seen[HOST]?.[0]).not.toContain('Authorization');
    expect(plane.credentials.asked).toEqual([]);
  });

  test('is covered by a wildcard with that port', async () => {
    plane.policy.use([bearerBinding('*.example.test:8443')]);
    expect(await ask(PORTED)).toBe(REPLY);
    expect(seen[PORTED]?.[0]).toContain(SECRET);
    expect(await connectTo(`${HOST}:9443`)).toContain('connect_port_not_allowed');
  });

  test.each([HOST, `${HOST}:443`, `${HOST}:9443`, `other.test:8443`])(
    'gets no credential for a request that names %s',
    async (named) => {
      plane.policy.use([bearerBinding(PORTED)]);
      expect(await ask(PORTED, undefined, named)).toMatch(/^HTTP\/1\.1 421 .*authority_mismatch/s);
      expect([seen[PORTED], plane.credentials.asked]).toEqual([[], []]);
    },
  );

  test('is not named by a request in a tunnel to port 443', async () => {
    plane.policy.use([bearerBinding(HOST)]);
    expect(await ask(HOST, undefined, PORTED)).toMatch(/^HTTP\/1\.1 421 .*authority_mismatch/s);
    expect(seen[HOST]).toEqual([]);
  });

  test('is reached in a session with a list only if the list has the host with that port', async () => {
    plane.scopes.set('with', { ...plane.session, allowed: allowedHosts([PORTED], []) });
    plane.scopes.set('without', { ...plane.session, allowed: allowedHosts([HOST], []) });
    expect(await ask(PORTED, 'with')).toBe(REPLY);
    expect(await connectTo(`${HOST}:443`, 'with')).toContain('egress_host_not_allowed');
    expect(await connectTo(PORTED, 'without')).toContain('connect_port_not_allowed');
    expect(await ask(PORTED, 'with', HOST)).toMatch(/421 .*authority_mismatch/s);
  });

  test.each([HOST, 'other.example.test:8443', 'other.example.test'])(
    'that a session names is no way to %s, which it does not name',
    async (named) => {
      plane.scopes.set('ports', { ...plane.session, otherPorts: allowedHosts([PORTED], []) });
      expect(await ask(PORTED, 'ports', named)).toMatch(/^HTTP\/1\.1 421 .*authority_mismatch/s);
      expect(seen[PORTED]).toEqual([]);
      expect(await ask(PORTED, 'ports')).toBe(REPLY);
    },
  );

  test('is reached in a step of a plan only if the lock has it', async () => {
    const scope = new StepScope({
      scopeId: 'scp_1',
      step: { stepId: 'fetch', effect: 'read', hosts: [PORTED], timeoutSeconds: 900, scopes: [], choice: null },
      session: { ...plane.session, otherPorts: allowedHosts([`${HOST}:9443`], []) },
      tokenHash: tokenHash('step'),
      expiresAt: Number.POSITIVE_INFINITY,
    });
    plane.scopes.set('step', scope);
    plane.policy.use([bearerBinding(PORTED), bearerBinding(`${HOST}:9443`)]);
    expect(await ask(PORTED, 'step')).toBe(REPLY);
    expect(await connectTo(`${HOST}:443`, 'step')).toContain('step_scope_host_denied');
    expect(await connectTo(`${HOST}:9443`, 'step')).toContain('connect_port_not_allowed');
    await scope.end();
  });

  test('closes when its binding is removed, also in a session that reaches every host', async () => {
    plane.policy.use([bearerBinding(PORTED)]);
    const client = await plane.open(PORTED);
    plane.policy.use([]);
    expect(await readUntil(client, () => false)).toBe('');
    expect(plane.openTunnels()).toBe(0);
  });

  test('of a connector has its operations, which port 443 does not have', async () => {
    const operation = sampleOperation({ path: '/a', inputs: [] });
    const credential = { owner: 'personal', path: 'user/demo' } as const;
    plane.policy.use([], [sampleConnector([operation], { hosts: [PORTED], credential })]);
    expect(await ask(PORTED)).toBe(REPLY);
    expect(await ask(HOST)).toBe(REPLY);
    expect(seen[PORTED]?.[0]).toContain(SECRET);
    expect(seen[HOST]?.[0]).not.toContain(SECRET);
    expect(plane.audit.events.map(({ type }) => type)).toEqual([
      'connector.proxy.proxied',
      'sandbox.proxy.passthrough',
    ]);
  });

  test('is what an entry names, exactly (property)', () => {
    const name = fc.constantFrom('api.example.com', 'a.b.example.com', 'example.com', '10.0.0.5', '[2001:db8::1]');
    const port = fc.oneof(fc.constantFrom(444, 8443, 844, 84), fc.integer({ min: 444, max: 65_535 }));
    fc.assert(
      fc.property(name, port, name, fc.oneof(fc.constant(443), port), (host, wanted, entry, written) => {
        const asked = hostOnPort(host, wanted);
        const named = hostOnPort(entry, written);
        const isNamed = host === entry && wanted === written;
        const reaches = (more: object): boolean => checkReach({ ...plane.session, ...more }, asked, plane).ok;
        plane.policy.use([bearerBinding(named)]);
        expect(reaches({})).toBe(isNamed);
        plane.policy.use([]);
        for (const list of ['allowed', 'otherPorts'])
          expect(reaches({ [list]: allowedHosts([named], []) })).toBe(isNamed);
        const reach = { stepId: 's', includes: (each: string) => each === named };
        expect(reaches({ reach })).toBe(isNamed);
      }),
    );
  });
});

test.for(onlyInHttp1([null]))('an absolute target names the port of its tunnel', async () => {
  plane.policy.use([bearerBinding(PORTED)]);
  const client = await plane.open(PORTED);
  client.write(`GET https://${HOST}/a HTTP/1.1\r\nHost: ${PORTED}\r\n\r\n`);
  expect(await readUntil(client, (got) => got.endsWith('\n'))).toMatch(/421 .*authority_mismatch/s);
  const again = await plane.open(PORTED);
  again.write(`GET https://${PORTED}/a HTTP/1.1\r\nHost: ${PORTED}\r\n\r\n`);
  expect(await readUntil(again, (got) => got.endsWith('hi'))).toBe(REPLY);
});
