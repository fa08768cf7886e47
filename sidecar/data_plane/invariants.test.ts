import { afterEach, beforeEach, expect, test } from 'vitest';

import type { HostBinding } from '../../shared/model/host_binding.ts';
import { REFUSALS } from '../../shared/model/refusal.ts';
import type { RefusalReason } from '../../shared/model/refusal.ts';
import type { DataPlane } from '../testing/data_plane.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { createAnswering, isHttp2, onlyInHttp1, readUntil, startDataPlane } from '../testing/data_plane.ts';

/** The invariants of design section 5, each with the attacks on it, and the refusals listed there. */

const HOST = 'api.example.test';
const SECRET = 'planted-secret-0123456789';
const DONE = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone';

let plane: DataPlane;
let seen: string[];

beforeEach(async () => {
  seen = [];
  plane = await startDataPlane();
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, SECRET);
  await plane.upstream(
    HOST,
    createAnswering((request) => (seen.push(request), DONE)),
  );
});

afterEach(async () => {
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

interface Asked {
  readonly host?: string;
  readonly servername?: string;
}

/** Sends a request and reads one answer: the upstream's or a refusal. */
async function ask(request: string, { host = HOST, servername = host }: Asked = {}): Promise<string> {
  const client = await plane.open(host, servername);
  client.write(request, 'latin1');
  return readUntil(client, (got) => got.endsWith('done') || got.endsWith('}\n'));
}

function bind(change: Partial<HostBinding> = {}): void {
  plane.policy.use([bearerBinding(HOST, change)]);
}

function reason(): unknown {
  return plane.audit.events.at(-1)?.data['svc.proxy.reason'] ?? plane.audit.events.at(-1)?.type;
}

test.each([
  ['Host in upper case', `GET / HTTP/1.1\r\nHost: API.Example.TEST\r\n\r\n`, HOST],
  ['Host with the port', `GET / HTTP/1.1\r\nHost: ${HOST}:443\r\n\r\n`, HOST],
  ['Host with a trailing dot', `GET / HTTP/1.1\r\nHost: ${HOST}.\r\n\r\n`, HOST],
  ['a server name in upper case', `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 'API.EXAMPLE.TEST'],
  ['no server name', `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, ''],
])('invariant 1, authority: accepts %s as the same host', async (_name, request, servername) => {
  bind();
  expect(await ask(request, { servername })).toBe(DONE);
  expect(seen[0]).toMatch(/^GET \/ HTTP/);
  expect(seen[0]).toContain(`Authorization: Bearer ${SECRET}`);
});

test.each(
  onlyInHttp1([
    ['no Host in HTTP/1.0', `GET / HTTP/1.0\r\n\r\n`],
    ['an absolute target', `GET https://${HOST}:443/ HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
  ]),
)('invariant 1, authority: accepts %s as the same host', async (_name, request) => {
  bind();
  expect(await ask(request)).toBe(DONE);
  expect(seen[0]).toContain(`Authorization: Bearer ${SECRET}`);
});

test.for(onlyInHttp1([null]))(
  'invariant 1, authority: an HTTP/1.0 request without a Host gets the host that its credential is for',
  async () => {
    bind();
    await ask(`GET / HTTP/1.0\r\nX-A: 1\r\n\r\n`);
    expect(seen).toEqual([`GET / HTTP/1.0\r\nHost: ${HOST}\r\nX-A: 1\r\nAuthorization: Bearer ${SECRET}\r\n\r\n`]);
    await ask(`GET / HTTP/1.0\r\nX-A: 1\r\nHost: ${HOST}:443\r\n\r\n`);
    expect(seen[1]?.match(/Host: .*/g)).toEqual([`Host: ${HOST}:443`]);
  },
);

test.each(['API.EXAMPLE.TEST', `${HOST}.`])('invariant 1, authority: CONNECT %s is the same host', async (host) => {
  bind();
  expect(await ask(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, { host, servername: HOST })).toBe(DONE);
  expect(plane.audit.events[0]?.data['svc.proxy.upstream.host']).toBe(HOST);
});

const ABSOLUTE: readonly (readonly [string, string])[] = [
  ['another absolute target', `GET https://evil.example.test/ HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
  ['another port in the absolute target', `GET https://${HOST}:444/ HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
];

test.each<readonly [string, string]>([
  ['another host', `GET / HTTP/1.1\r\nHost: evil.example.test\r\n\r\n`],
  ['another port', `GET / HTTP/1.1\r\nHost: ${HOST}:8443\r\n\r\n`],
  ['a host with the same prefix', `GET / HTTP/1.1\r\nHost: ${HOST}.evil.test\r\n\r\n`],
  ...(isHttp2() ? [] : ABSOLUTE),
])('invariant 1, authority: refuses %s with no credential resolved', async (_name, request) => {
  bind();
  expect(await ask(request)).toMatch(/^HTTP\/1\.1 421 .*authority_mismatch/s);
  expect([plane.credentials.asked, seen, reason()]).toEqual([[], [], 'authority_mismatch']);
});

const REFUSED = /^HTTP\/1\.1 400 .*invalid_request/s;
const REFUSED_OR_RESET = /^(?:$|HTTP\/1\.1 400 .*invalid_request)/s;

/** Over HTTP/2 the first Host is sent as the `:authority`; the library resets a stream whose characters no host has. */
test.each([
  ...onlyInHttp1([['two Host headers', `Host: ${HOST}\r\nHost: ${HOST}\r\n`]]),
  ['two Host headers of two hosts', `Host: ${HOST}\r\nHost: evil.example.test\r\n`],
  ['two Host headers of two ports', `Host: ${HOST}\r\nHost: ${HOST}:443\r\n`],
  ['a Host with user information', `Host: a@${HOST}\r\n`],
  ['an empty Host', 'Host:\r\n'],
  ['no Host in HTTP/1.1', 'X-A: 1\r\n'],
  ['two hosts in one Host', `Host: ${HOST}, evil.example.test\r\n`],
  ['a Host with a path', `Host: ${HOST}/x\r\n`],
  ['a Host with a scheme', `Host: https://${HOST}\r\n`],
  ['a Host with an empty label', `Host: api..example.test\r\n`],
  ['a Host with an encoded dot', `Host: api%2eexample.test\r\n`],
  ['a Host with a port that is no number', `Host: ${HOST}:x\r\n`],
  ['a Host with a port of 0', `Host: ${HOST}:0\r\n`],
  ['a Host with a space', `Host: api. example.test\r\n`],
  ['a Host with a tab', `Host: ${HOST}\tevil.example.test\r\n`],
  ['a Host with a backslash', `Host: ${HOST}\\@evil.example.test\r\n`],
  ['a Host beyond ASCII', `Host: \xe4${HOST}\r\n`],
])('invariant 6, fail closed: refuses %s, with a binding and without', async (_name, lines) => {
  for (const bindings of [[], [bearerBinding(HOST)]]) {
    plane.policy.use(bindings);
    expect(await ask(`GET / HTTP/1.1\r\n${lines}\r\n`)).toMatch(isHttp2() ? REFUSED_OR_RESET : REFUSED);
  }
  expect([plane.credentials.asked, seen]).toEqual([[], []]);
});

test('invariant 2, contract before credential: checks host and effect before it asks the vault', async () => {
  bind({ allowedHosts: ['other.example.test'] });
  expect(await ask(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 403 .*host_not_allowed/s);
  bind({ effect: 'read' });
  const upgrade = isHttp2() ? [] : ['Upgrade: websocket\r\nConnection: Upgrade\r\n'];
  for (const lines of [...upgrade, 'X-HTTP-Method-Override: DELETE\r\n']) {
    expect(await ask(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n${lines}\r\n`)).toMatch(
      /^HTTP\/1\.1 403 .*effect_not_allowed/s,
    );
  }
  const body = `POST / HTTP/1.1\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\n\r\n`;
  expect(await ask(body)).toMatch(/^HTTP\/1\.1 403 /);
  expect([plane.credentials.asked, seen]).toEqual([[], []]);
  expect(new Set(plane.audit.events.map((event) => event.type))).toEqual(new Set(['sandbox.proxy.trust_denied']));
});

test('invariant 2, contract before credential: applies to a request with its own credential too', async () => {
  bind({ effect: 'read', emit: { mechanism: 'sentinel-swap', sentinel: 'placeholder-0000-0000' } });
  const own = `POST / HTTP/1.1\r\nHost: ${HOST}\r\nAuthorization: Bearer own\r\nContent-Length: 0\r\n\r\n`;
  expect(await ask(own)).toMatch(/^HTTP\/1\.1 403 .*effect_not_allowed/s);
  expect(seen).toEqual([]);
});

test.for(onlyInHttp1([null]))(
  'invariant 3, injected wins: rewrites an absolute target and drops every hop-by-hop header',
  async () => {
    bind();
    const lines = [
      `Host: ${HOST}`,
      'Connection: keep-alive, x-hop, host, content-length',
      'Keep-Alive: timeout=5',
      'Proxy-Connection: keep-alive',
      'Proxy-Authorization: Basic abc',
      'TE: trailers',
      'Upgrade: h2c',
      'X-Hop: 1',
      'X-Kept: 2',
      'Accept-Encoding: gzip;q=0.5, compress, br',
    ];
    await ask(`GET https://${HOST}?a=%20b HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    expect(seen).toEqual([
      `GET /?a=%20b HTTP/1.1\r\nHost: ${HOST}\r\nX-Kept: 2\r\nAccept-Encoding: gzip;q=0.5, br\r\nAuthorization: Bearer ${SECRET}\r\n\r\n`,
    ]);
  },
);

test.for(onlyInHttp1([null]))(
  'invariant 3, injected wins: keeps only close of Connection, because the tunnel ends then',
  async () => {
    bind();
    const lines = [`Host: ${HOST}`, 'Connection: x-hop, Close, authorization', 'X-Hop: 1', 'Authorization: Bearer'];
    await ask(`GET / HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    expect(seen).toEqual([
      `GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\nAuthorization: Bearer ${SECRET}\r\n\r\n`,
    ]);
  },
);

test('invariant 3, injected wins: OPTIONS * keeps its target', async () => {
  bind();
  await ask(`OPTIONS * HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  expect(seen[0]).toMatch(/^OPTIONS \* HTTP\/1\.1\r\n/);
});

test.each(
  onlyInHttp1([
    [
      'an odd method, target and header order',
      `M-SEARCH /a%2F..//b;c?d#e HTTP/1.1\r\nx-B: 2\r\nHOST:  ${HOST} \r\nX-b:\t1\r\n\r\n`,
    ],
    ['an absolute target', `GET https://${HOST}/a HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
    [
      'hop-by-hop headers',
      `GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: keep-alive, x-a\r\nX-A: 1\r\nTE: trailers\r\n\r\n`,
    ],
    ['HTTP/1.0', `GET / HTTP/1.0\r\n\r\n`],
  ]),
)('invariant 5, passthrough is exact: %s', (_name, request) => expectUnchanged(request));

test.each([
  ['its own Host header', `GET / HTTP/1.1\r\nHost: elsewhere.test:99\r\n\r\n`],
  ['its own credential', `GET / HTTP/1.1\r\nHost: ${HOST}\r\nAuthorization: Bearer own\r\n\r\n`],
])('invariant 5, passthrough is exact: %s', (_name, request) => expectUnchanged(request));

async function expectUnchanged(request: string): Promise<void> {
  expect(await ask(request)).toBe(DONE);
  expect(seen).toEqual([request]);
  expect(plane.credentials.asked).toEqual([]);
}

test.for(onlyInHttp1([null]))(
  'invariant 5, passthrough is exact: drops only headers meant for this proxy',
  async () => {
    await ask(
      `GET / HTTP/1.1\r\nHost: ${HOST}\r\nProxy-Authorization: Basic x\r\nx-A: 1\r\nProxy-Connection: close\r\n\r\n`,
    );
    expect(seen).toEqual([`GET / HTTP/1.1\r\nHost: ${HOST}\r\nx-A: 1\r\n\r\n`]);
  },
);

test.for(onlyInHttp1([null]))(
  'invariant 5, passthrough is exact: chunks with extensions and trailers, both ways',
  async () => {
    const body = '3;x="y"\r\nabc\r\n0\r\nX-T: 1\r\n\r\n';
    const reply = `HTTP/1.1 299  odd reason\r\nTransfer-Encoding: chunked\r\nx-A:1\r\nX-a:  2\r\n\r\n${body}`;
    await plane.upstream('two.example.test', (socket) => {
      let got = '';
      socket.on('data', (data: Buffer) => {
        got += data.toString('latin1');
        if (!got.endsWith('X-T: 1\r\n\r\n')) return;
        seen.push(got);
        socket.write(reply, 'latin1');
      });
    });
    const client = await plane.open('two.example.test');
    const request = `POST / HTTP/1.1\r\nHost: two.example.test\r\nTransfer-Encoding: chunked\r\n\r\n${body}`;
    client.write(request);
    expect(await readUntil(client, (got) => got.endsWith('X-T: 1\r\n\r\n'))).toBe(reply);
    expect(seen).toEqual([request]);
  },
);

test.each([
  '127.0.0.1',
  '2130706433',
  '0x7f.1',
  '0300.0250.1',
  '100.64.0.1',
  '172.16.0.1',
  '0.0.0.0',
  '[fc00::1]',
  '[fe80::1]',
  '[::ffff:127.0.0.1]',
  '[64:ff9b::a00:1]',
  '[2002:a00:1::]',
])('invariant 7, IP literals: refuses passthrough to %s', async (address) => {
  const got = await ask(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, { host: address, servername: '' });
  expect(got).toMatch(/^HTTP\/1\.1 403 .*passthrough_target_not_allowed/s);
  expect(reason()).toBe('passthrough_target_not_allowed');
});

/** How to provoke each refusal of a request. */
const CAUSES: Partial<Record<RefusalReason, () => string | Promise<string>>> = {
  invalid_request: () => `GET / HTTP/1.1\r\n${isHttp2() ? `Host: ${HOST}:0\r\n` : ''}\r\n`,
  head_too_large: () =>
    isHttp2()
      ? `GET / HTTP/1.1\r\nHost: ${HOST}\r\n${`X: ${'x'.repeat(35_000)}\r\n`.repeat(2)}\r\n`
      : `GET / HTTP/1.1\r\nX: ${'x'.repeat(70_000)}`,
  authority_mismatch: () => (bind(), `GET / HTTP/1.1\r\nHost: x.test\r\n\r\n`),
  host_not_allowed: () => (bind({ allowedHosts: ['x.test'] }), `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`),
  effect_not_allowed: () => (bind({ effect: 'read' }), `PUT / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`),
  body_too_large: () => (bind(), `PUT / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 99999999999\r\n\r\n`),
  credential_unavailable: () => {
    bind({ credential: { owner: 'personal', path: 'user/absent' } });
    return `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
  },
  control_plane_unavailable: () => {
    bind();
    plane.credentials.refuse('control_plane_unavailable');
    return `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
  },
  snapshot_expired: () => (plane.policy.refuse('snapshot_expired'), `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`),
  audit_unavailable: () => {
    bind();
    plane.audit.accepting = false;
    return `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
  },
  signing_form_unsupported: () => {
    bind({ injection: { scheme: 'sigv4-resign', accessKeyId: 'AKIDEXAMPLE', region: 'us-east-1', service: 's3' } });
    return `PUT / HTTP/1.1\r\nHost: ${HOST}\r\nx-amz-content-sha256: STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD\r\n\r\n`;
  },
  upstream_unreachable: async () => {
    await plane.upstream(HOST, (socket) => socket.once('data', () => socket.destroy()));
    return `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
  },
  upstream_tls_failed: async () => {
    await plane.upstream(HOST, () => undefined, 'other.example.test');
    return `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
  },
  upstream_invalid_reply: async () => {
    await plane.upstream(
      HOST,
      createAnswering(() => (isHttp2() ? `HTTP/1.1 200 OK\r\n${'X: 1\r\n'.repeat(201)}\r\n` : 'HTTP/2 200\r\n\r\n')),
    );
    return `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
  },
};

function isReason(name: string): name is RefusalReason {
  return name in REFUSALS;
}

test.each(Object.keys(CAUSES).filter(isReason))('answers %s with its status and records it once', async (why) => {
  const { status, event } = REFUSALS[why];
  const request = (await CAUSES[why]?.()) ?? '';
  const got = await ask(request);
  expect(got).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [^]*"code":"${why}"`));
  expect(got).not.toContain(SECRET);
  const recorded = plane.audit.events.map(({ type, data }) => [type, data['svc.proxy.reason']]);
  expect(recorded).toEqual(event === null ? [] : [[event, why]]);
  expect(seen.join('')).not.toContain(SECRET);
});

test('invariant 4, nothing secret leaves: audit, metrics and errors contain no secret, for any outcome', async () => {
  bind();
  await ask(`GET /?token=query-secret-123 HTTP/1.1\r\nHost: ${HOST}\r\nCookie: header-secret-123\r\n\r\n`);
  await ask(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 15\r\n\r\nbody-secret-123`);
  await ask(`GET http://u:user-secret-123@x/ HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  const told = JSON.stringify([plane.audit.events, [...plane.metrics.counts], plane.errors]);
  expect(told).not.toMatch(/-secret-/);
  expect(told).toContain('binding_injected');
});
