import type { TLSSocket } from 'node:tls';
import { setImmediate as turn } from 'node:timers/promises';
import { generate } from 'selfsigned';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import type { ClientCertificate, HostBinding } from '../../shared/model/host_binding.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import type { DataPlane } from '../testing/data_plane.ts';
import { createAnswering, isHttp2, readUntil, startDataPlane } from '../testing/data_plane.ts';

/** Hosts that require a client certificate (decision 0168). */

const HOST = 'api.example.test';
const TOKEN = 'planted-bound-secret-0123456789';
const REF = { owner: 'personal', path: 'user/certificate' } as const;
const CERTIFICATE: ClientCertificate = { id: 'crt_1', host: HOST, credential: REF };
const BINDING: HostBinding = { ...bearerBinding(HOST), effect: 'write' };
const REPLY = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\nSet-Cookie: a=b\r\n\r\ndone';
const GET = `GET /a HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
const YEARS = { notBeforeDate: new Date('2025-01-01'), notAfterDate: new Date('2045-01-01') };

let own: Awaited<ReturnType<typeof generate>>;
let other: typeof own;
let plane: DataPlane;
/** The connections that the upstream accepted, and the requests that it got. */
let upstreams: TLSSocket[];
let resumed: boolean[];
let requests: string[];
let answer: string;

const make = (value: string) =>
  generate([{ name: 'commonName', value }], { keyType: 'ec', algorithm: 'sha256', ...YEARS });
beforeAll(async () => {
  [own, other] = await Promise.all([make('own'), make('other')]);
});

beforeEach(async () => {
  upstreams = [];
  resumed = [];
  requests = [];
  answer = REPLY;
  plane = await startDataPlane({ keepUpstreamSeconds: 60 });
  plane.credentials.set(REF, own.cert + own.private);
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, TOKEN);
  await listenFor(own.cert);
  use();
});

afterEach(async () => {
  await plane.stop();
  expect(plane.errors).toEqual([]);
  // What watches for a change ends with its connection.
  await waitUntil(() => plane.policy.watched === 0);
});

async function listenFor(accepted: string): Promise<void> {
  const answering = createAnswering((request) => {
    requests.push(request);
    return answer;
  });
  await plane.certifiedUpstream(HOST, answering, accepted, (socket) => {
    upstreams.push(socket);
    resumed.push(socket.isSessionReused());
  });
}

/** The policy, with the certificate. */
function use(change: Partial<ClientCertificate> = {}, bindings: readonly HostBinding[] = []): void {
  plane.policy.use(bindings, [], [], [{ ...CERTIFICATE, ...change }]);
}

const isWhole = (got: string): boolean => got.endsWith('done') || got.endsWith('}\n');

async function ask(request = GET, client?: TLSSocket): Promise<string> {
  const socket = client ?? (await plane.open(HOST));
  const reply = readUntil(socket, isWhole);
  socket.write(request);
  const got = await reply;
  if (client === undefined) socket.destroy();
  return got;
}

async function waitUntil(isSo: () => boolean): Promise<void> {
  while (!isSo()) await turn();
}

const refused = (code: string): RegExp => new RegExp(`^HTTP/1\\.1 \\d+ .*"${code}"`, 's');
const lastEvent = () => plane.audit.events.at(-1)?.data;

/** Changes something while the key of the certificate is looked up. */
function whileLookedUp(change: () => void): void {
  const resolve = plane.credentials.resolve.bind(plane.credentials);
  vi.spyOn(plane.credentials, 'resolve').mockImplementation(async (ref) => {
    const released = await resolve(ref);
    if (ref.path === REF.path) change();
    return released;
  });
}

describe('a request to a host with a client certificate', () => {
  test('is sent on a connection that the certificate opened, and its event names the secret and the version', async () => {
    const got = await ask();
    expect(got).toMatch(/^HTTP\/1\.1 200 .*done$/s);
    expect(got).not.toMatch(/set-cookie/i);
    expect(lastEvent()).toMatchObject({
      'svc.proxy.client_certificate.ref': 'vault://user/certificate',
      'svc.proxy.client_certificate.version': '1',
      'svc.proxy.reply.withheld': ['set-cookie'],
    });
  });

  test('counts towards the bytes of its session, and is refused once they are reached', async () => {
    plane.sessionLimits.set('ses_test', { bytesPerDay: 'done'.length });
    expect(await ask()).toMatch(/^HTTP\/1\.1 200 /);
    expect(plane.bytesCounted('ses_test')).toBe('done'.length);
    expect(await ask()).toMatch(refused('request_limit_reached'));
    expect(requests).toHaveLength(1);
  });

  test('has the credential of its binding beside it', async () => {
    use({}, [BINDING]);
    expect(await ask()).toMatch(/^HTTP\/1\.1 200 /);
    expect(requests.join('')).toContain(`Bearer ${TOKEN}`);
    expect(lastEvent()).toMatchObject({ 'svc.proxy.client_certificate.version': '1' });
  });

  test.each<readonly [string, () => void, string, string]>([
    [
      'that its effect does not admit',
      () => use({ effect: 'read' }),
      GET.replace('GET', 'DELETE'),
      'effect_not_allowed',
    ],
    ['that names another host', () => undefined, GET.replace(HOST, 'other.example.test'), 'authority_mismatch'],
    ['that cannot be recorded', () => (plane.audit.accepting = false), GET, 'audit_unavailable'],
  ])('%s is refused before its key is looked up, and nothing is dialled', async (_what, change, request, code) => {
    change();
    expect(await ask(request)).toMatch(refused(code));
    expect([plane.credentials.asked, upstreams]).toEqual([[], []]);
  });

  test('a binding there does not lift its effect', async () => {
    use({ effect: 'read' }, [BINDING]);
    expect(await ask(GET.replace('GET', 'DELETE'))).toMatch(refused('effect_not_allowed'));
    expect([plane.credentials.asked, upstreams]).toEqual([[], []]);
  });

  test('beside operations that need an approval it may only read, unless its effect says more', async () => {
    const erase = sampleOperation({ name: 'erase', method: 'DELETE', approval: 'required', effect: 'delete' });
    const connector = sampleConnector([erase], { hosts: [HOST] });
    plane.policy.use([], [connector], [], [CERTIFICATE]);
    expect(await ask(GET.replace('GET', 'PUT'))).toMatch(refused('effect_not_allowed'));
    expect(upstreams).toEqual([]);
    plane.policy.use([], [connector], [], [{ ...CERTIFICATE, effect: 'write' }]);
    expect(await ask(GET.replace('GET', 'PUT'))).toMatch(/^HTTP\/1\.1 200 /);
  });

  test('over plain http is refused', async () => {
    const allowed = { patterns: [{ kind: 'exact', host: HOST }] } as const;
    Object.assign(plane.session, { plainHttp: { allowed, named: new Set([HOST]) } });
    const basic = Buffer.from(`ses_test:${plane.token}`).toString('base64');
    const request = `GET http://${HOST}/a HTTP/1.1\r\nHost: ${HOST}\r\nProxy-Authorization: Basic ${basic}\r\n\r\n`;
    expect(await plane.raw(request, isWhole)).toMatch(refused('plain_http_bound_host'));
    expect(plane.credentials.asked).toEqual([]);
  });

  test.each([
    ['is over', { notAfterDate: new Date('2025-12-31') }, 'expired on 2025-12-31'],
    ['has not begun', { notBeforeDate: new Date('2026-02-01') }, 'not valid before 2026-02-01'],
  ])('is refused before the dial if the time of its certificate %s', async (_what, dates, said) => {
    const options = { keyType: 'ec', algorithm: 'sha256', ...YEARS, ...dates } as const;
    const { cert, private: key } = await generate([{ name: 'commonName', value: 'own' }], options);
    plane.credentials.set(REF, cert + key);
    const got = await ask();
    expect(got).toMatch(refused('credential_unavailable'));
    expect(got).toContain(said);
    expect(upstreams).toEqual([]);
  });

  test('is refused, and nothing is sent, if its certificate expires while the upstream is dialled', async () => {
    const options = { keyType: 'ec', algorithm: 'sha256', ...YEARS, notAfterDate: new Date('2026-06-01') } as const;
    const { cert, private: key } = await generate([{ name: 'commonName', value: 'own' }], options);
    plane.credentials.set(REF, cert + key);
    const dials = await plane.hold(HOST);
    const answered = ask();
    await dials.reached;
    plane.clock.advance(365 * 24 * 3_600_000);
    dials.letThrough();
    const got = await answered;
    expect(got).toMatch(refused('credential_unavailable'));
    expect(got).toContain('expired while this request was in progress');
  });

  test('is refused before the dial if the secret is no certificate, and nothing of it is told', async () => {
    plane.credentials.set(REF, own.private);
    const got = await ask();
    expect(got).toMatch(refused('credential_unavailable'));
    expect(got).toContain('has no PEM certificate');
    expect(got + JSON.stringify(plane.audit.events)).not.toContain(own.private.split('\n')[1] ?? '');
    expect(upstreams).toEqual([]);
  });

  test('is refused with a reason if the host does not accept its certificate', async () => {
    await listenFor(other.cert);
    const got = await ask();
    // Such servers send no alert.
    expect(got).toMatch(refused('upstream_unreachable'));
    expect(got).toContain('may not accept the client certificate vault://user/certificate');
    expect([requests, lastEvent()]).toMatchObject([[], { 'svc.proxy.client_certificate.version': '1' }]);
  });

  test('is told how to have one if the host has none', async () => {
    plane.policy.use([]);
    const got = await ask();
    expect(got).toMatch(refused('upstream_tls_failed'));
    expect(got).toContain(`svc cert add ${HOST} --cert FILE --key FILE`);
  });
});

describe('what changes while the key is looked up', () => {
  const erase = sampleOperation({ name: 'erase', method: 'DELETE', approval: 'required', effect: 'delete' });
  test.each<readonly [string, () => void]>([
    ['the record is removed', () => plane.policy.use([])],
    ['its effect is narrowed', () => use({ effect: 'read' })],
    ['its secret has another version', () => plane.credentials.set(REF, own.cert + own.private, '2')],
    ['its secret is deleted', () => plane.credentials.delete(REF)],
    ['the host is bound', () => use({}, [BINDING])],
    [
      'an operation of the host needs an approval from now on',
      () => plane.policy.use([], [sampleConnector([erase], { hosts: [HOST] })], [], [CERTIFICATE]),
    ],
  ])('%s: the request is not sent', async (_what, change) => {
    whileLookedUp(change);
    expect(await ask(GET.replace('GET', 'DELETE'))).toMatch(refused('credential_unavailable'));
    expect(requests).toEqual([]);
  });

  test('the control plane has gone: the request is refused, and nothing is dialled', async () => {
    whileLookedUp(() => plane.policy.refuse('control_plane_unavailable'));
    expect(await ask()).toMatch(refused('control_plane_unavailable'));
    expect(upstreams).toEqual([]);
  });
});

test('a tunnel that was used before the host had a certificate dials again with it', async () => {
  plane.policy.use([]);
  const clients: (string | undefined)[] = [];
  const asking = { requestCert: true, rejectUnauthorized: false };
  const answering = createAnswering(() => REPLY);
  await plane.certifiedUpstream(
    HOST,
    answering,
    own.cert,
    (socket) => {
      const { subject } = socket.getPeerCertificate();
      clients.push(subject === undefined ? undefined : String(subject.CN));
    },
    asking,
  );
  const client = await plane.open(HOST);
  await ask(GET, client);
  use();
  await ask(GET, client);
  expect(clients).toEqual([undefined, 'own']);
});

describe('a connection that a certificate opened', () => {
  test('serves the requests of its tunnel, and none of the next', async () => {
    use({}, [BINDING]);
    const client = await plane.open(HOST);
    await ask(GET, client);
    await ask(GET, client);
    expect(upstreams.length).toBe(1);
    client.destroy();
    await waitUntil(() => plane.openTunnels() === 0 && upstreams[0]?.destroyed === true);
    expect(plane.warm.size).toBe(0);
    await ask();
    expect(resumed).toEqual([false, false]);
  });

  test('serves no request of another lane', async () => {
    use({}, [{ ...BINDING, emit: { mechanism: 'sentinel-swap', sentinel: 'planted-sentinel' } }]);
    const client = await plane.open(HOST);
    await ask(GET, client);
    await ask(GET.replace('\r\n\r\n', '\r\nAuthorization: Bearer its-own-token\r\n\r\n'), client);
    expect(requests.map((request) => /^authorization: *(.*)$/im.exec(request)?.[1])).toEqual([
      `Bearer ${TOKEN}`,
      'Bearer its-own-token',
    ]);
    expect(upstreams.length).toBe(2);
  });

  test.each<readonly [string, () => void]>([
    ['the record is removed', () => plane.policy.use([])],
    ['its effect is changed', () => use({ effect: 'write' })],
    [
      'its secret has another version',
      () => {
        plane.credentials.set(REF, own.cert + own.private, '2');
        use();
      },
    ],
    ['no policy is usable', () => plane.policy.refuse('control_plane_unavailable')],
  ])('ends when %s: idle, and in the middle of a reply', async (_what, change) => {
    const idle = await plane.open(HOST);
    await ask(GET, idle);
    answer = 'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nfirst';
    const busy = await plane.open(HOST);
    const begun = readUntil(busy, (got) => got.includes('first'));
    busy.write(GET);
    await begun;
    expect(upstreams.length).toBe(2);
    change();
    await waitUntil(() => upstreams.every((socket) => socket.destroyed));
  });

  test('stays when another host changes', async () => {
    const client = await plane.open(HOST);
    await ask(GET, client);
    use({}, [bearerBinding('other.example.test')]);
    await ask(GET, client);
    expect(upstreams.length).toBe(1);
  });
});

test('a run by name whose method the effect does not admit is refused before anybody is asked', async () => {
  const erase = sampleOperation({ name: 'erase', method: 'DELETE', approval: 'required', effect: 'delete' });
  plane.policy.use([], [sampleConnector([erase], { hosts: [HOST] })], [], [{ ...CERTIFICATE, effect: 'read' }]);
  const request = { connector_fqn: 'acme/items', operation: 'erase', args: { id: '7' } };
  const caller = { sessionId: 'ses_test', choice: null, signal: new AbortController().signal };
  const result = await plane.operations.run(request, { ...caller, source: 'generated_connector_shim' });
  expect(result).toMatchObject({ ok: false, error: { reason: 'effect_not_allowed' } });
  expect([plane.approvals.asked, plane.credentials.asked]).toEqual([[], []]);
});

test('a run by name has the certificate', async () => {
  plane.credentials.set({ owner: 'personal', path: 'connectors/acme/items' }, TOKEN);
  plane.policy.use([], [sampleConnector([sampleOperation()], { hosts: [HOST] })], [], [CERTIFICATE]);
  const request = { connector_fqn: 'acme/items', operation: 'get-item', args: { id: '7' } };
  const caller = { sessionId: 'ses_test', choice: null, signal: new AbortController().signal };
  const result = await plane.operations.run(request, { ...caller, source: 'generated_connector_shim' });
  expect(result).toMatchObject({ ok: true });
  expect(lastEvent()).toMatchObject({ 'svc.proxy.client_certificate.version': '1' });
});

test('a client that offers both versions speaks the one of the record, and nothing is dialled before its request', async () => {
  if (isHttp2()) return;
  for (const [change, spoken] of [
    [{}, 'http/1.1'],
    [{ http2: true }, 'h2'],
  ] as const) {
    use(change);
    const socket = await plane.openTls(HOST, ['h2', 'http/1.1']);
    expect(socket.alpnProtocol).toBe(spoken);
    socket.destroy();
  }
  expect(upstreams).toEqual([]);
});
