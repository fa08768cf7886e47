import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { plantSecret } from '../support/planted_secret.ts';
import { connectThroughProxy, type RawConnection, type SeenReply } from '../support/raw_client.ts';
import type { Session } from '../support/svc.ts';
import { createTestCa } from '../support/test_ca.ts';
import { startTlsUpstream, type TlsUpstream } from '../support/tls_upstream.ts';
import { startWorld, type World } from '../support/world.ts';

// Design section 5, invariant 1: six places name a request's host (the CONNECT target, the TLS server name, the Host header, an
// absolute target, the dialled name and the name on its certificate). Every combination in which they disagree is tried, as the
// first request of a tunnel and on a reused socket.

const BOUND = 'bound.example.test';
const OTHER = 'other-bound.example.test';
const PLAIN = 'plain.example.test';
const SWAPPED = 'swapped.example.test';
const SENTINEL = 'placeholder-0000-0000-0000';
const MISNAMED_BOUND = 'misnamed-bound.example.test';
const MISNAMED_PLAIN = 'misnamed-plain.example.test';
const BINDINGS = [BOUND, OTHER, MISNAMED_BOUND];
const SECRETS = new Map(BINDINGS.map((host) => [host, plantSecret()]));
let world: World;
let misnamed: TlsUpstream;
let session: Session;

beforeAll(async () => {
  const ca = await createTestCa();
  misnamed = await startTlsUpstream(await ca.issue([BOUND, 'unrelated.example.test']));
  world = await startWorld([BOUND, OTHER, PLAIN, SWAPPED], {
    upstreamCaFiles: [ca.file],
    resolve: [MISNAMED_BOUND, MISNAMED_PLAIN].map((host) => `${host}:127.0.0.1:${misnamed.port}`),
  });
  for (const [host, secret] of SECRETS) {
    const path = `user/${host.split('.')[0]}`;
    await world.svc.secret(path, secret);
    await world.svc.binding({ host, scheme: 'bearer', credential_ref: `vault://${path}` });
  }
  const reference = { credential_ref: `vault://user/${BOUND.split('.')[0]}`, scheme: 'bearer' };
  await world.svc.binding({
    ...reference,
    host: SWAPPED,
    emit_mechanism: 'sentinel-swap',
    sentinel: { value: SENTINEL },
  });
  session = await world.svc.session();
});
afterAll(async () => {
  await world.stop();
  await misnamed.close();
});
beforeEach(() => {
  world.upstream.reset();
  misnamed.reset();
});

interface Named {
  readonly tunnel: string;
  /** The TLS server name; if empty, none is sent. */
  readonly serverName: string;
  /** The Host header; null for none, in HTTP/1.0. */
  readonly host: string | null;
  /** The host of an absolute target; null if the target is a path. */
  readonly target: string | null;
}

/** Every combination of names for a tunnel; the wrong ones name `other`. */
function combinations(tunnel: string, other: string): Named[] {
  const all: Named[] = [];
  for (const serverName of [tunnel, other, '']) {
    for (const host of [tunnel, `${tunnel}:443`, other, `${tunnel}:8443`, `${tunnel}.evil.test`, null]) {
      for (const target of [null, tunnel, other, `${tunnel}:8443`]) all.push({ tunnel, serverName, host, target });
    }
  }
  return all;
}

function agree({ tunnel, serverName, host, target }: Named): boolean {
  const sameHost = host === null || host === tunnel || host === `${tunnel}:443`;
  return serverName !== differs(serverName, tunnel) && sameHost && (target === null || target === tunnel);
}

/** The server name if it is another host's; null if it is absent or the tunnel's own. */
function differs(serverName: string, tunnel: string): string | null {
  return serverName === '' || serverName === tunnel ? null : serverName;
}

function request({ host, target }: Named, path: string): string {
  const start = `GET ${target === null ? path : `https://${target}${path}`}`;
  return host === null
    ? `${start} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n`
    : `${start} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
}

function codeOf(seen: SeenReply): string {
  return /"code":"(\w+)"/.exec(seen.body.data.toString())?.[1] ?? '';
}

const requestTo = (host: string, path: string): string => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
const open = ({ tunnel, serverName }: Named): Promise<RawConnection> =>
  connectThroughProxy(session, tunnel, { servername: serverName });
const label = (named: Named): string =>
  `SNI ${named.serverName || 'none'}, Host ${named.host ?? 'none'}, target ${named.target ?? 'a path'}`;
const withLabels = (all: readonly Named[]): { label: string; named: Named }[] =>
  all.map((named) => ({ label: label(named), named }));

describe('names that disagree in a tunnel to a bound host', () => {
  const wrong = withLabels(combinations(BOUND, OTHER).filter((named) => !agree(named)));

  it.each(wrong)('are refused on a fresh tunnel: $label', async ({ named }) => {
    const client = await open(named);
    const seen = await client.exchange(request(named, '/'));
    client.close();
    expect([seen.status, codeOf(seen)]).toEqual([421, 'authority_mismatch']);
    expect(world.upstream.requests).toEqual([]);
  });

  it('are also refused if the other host is unknown to svc', async () => {
    for (const named of combinations(BOUND, 'evil.test').filter((one) => !agree(one))) {
      const client = await open(named);
      expect(codeOf(await client.exchange(request(named, '/')))).toBe('authority_mismatch');
      client.close();
    }
    expect(world.upstream.requests).toEqual([]);
  });

  it('caused no credential lookup', async () => {
    const events = await world.svc.events();
    expect(events.filter((event) => event.type === 'control.credential.released')).toEqual([]);
  });

  it.each(wrong.filter(({ named }) => differs(named.serverName, BOUND) === null))(
    'are refused on a reused socket, which continues with its own host: $label',
    async ({ named }) => {
      const client = await open(named);
      expect((await client.exchange(requestTo(BOUND, '/1'))).status).toBe(200);
      expect((await client.exchange(request(named, '/2'))).status).toBe(421);
      expect((await client.exchange(requestTo(BOUND, '/3'))).status).toBe(200);
      client.close();
      expect(world.upstream.requests.map(({ target, connection }) => [target, connection])).toEqual([
        ['/1', world.upstream.last().connection],
        ['/3', world.upstream.last().connection],
      ]);
      expectCredential(BOUND);
    },
  );
});

describe('names that agree in a tunnel to a bound host', () => {
  it.each(withLabels(combinations(BOUND, OTHER).filter(agree)))('get its credential: $label', async ({ named }) => {
    const client = await open(named);
    for (const path of ['/1', '/2']) expect((await client.exchange(request(named, path))).status).toBe(200);
    client.close();
    expect(world.upstream.requests.map(({ target }) => target)).toEqual(['/1', '/2']);
    expectCredential(BOUND);
  });
});

describe('a tunnel to a host without a binding', () => {
  it.each(withLabels(combinations(PLAIN, BOUND)))('never gets a credential: $label', async ({ named }) => {
    const client = await open(named);
    const [first, second] = [request(named, '/1'), request(named, '/2')];
    expect((await client.exchange(first)).status).toBe(200);
    expect((await client.exchange(second)).status).toBe(200);
    client.close();
    expect(world.upstream.requests.map(({ text }) => text)).toEqual([first, second]);
    expect(world.upstream.requests.map(({ serverName }) => serverName)).toEqual([PLAIN, PLAIN]);
  });
});

describe('one tunnel with requests of two identities', () => {
  it('uses a socket for each, so that the state of an upstream connection belongs to one identity', async () => {
    const client = await connectThroughProxy(session, SWAPPED);
    const tokens = [SENTINEL, 'its-own', SENTINEL, 'its-own', SENTINEL];
    for (const token of tokens) {
      const head = `GET / HTTP/1.1\r\nHost: ${SWAPPED}\r\nAuthorization: Bearer ${token}\r\n\r\n`;
      expect((await client.exchange(head)).status).toBe(200);
    }
    client.close();
    const seen = world.upstream.requests.map((one) => [one.header('authorization'), one.connection]);
    const [first = 0, second = 0] = world.upstream.requests.map(({ connection }) => connection);
    const credentialed = [`Bearer ${SECRETS.get(BOUND)}`, first];
    const own = ['Bearer its-own', second];
    expect(first).not.toBe(second);
    expect(seen).toEqual([credentialed, own, credentialed, own, credentialed]);
  });
});

describe('a certificate for another name than the one dialled', () => {
  it.each(withLabels(combinations(MISNAMED_BOUND, BOUND)))(
    'gets no request for a bound host: $label',
    async ({ named }) => {
      const client = await open(named);
      const seen = await client.exchange(request(named, '/'));
      client.close();
      expect(codeOf(seen)).toBe(agree(named) ? 'upstream_tls_failed' : 'authority_mismatch');
      expect(misnamed.requests).toEqual([]);
    },
  );

  // The certificate is valid for the Host and the server name: only the dialled name counts.
  it.each(withLabels(combinations(MISNAMED_PLAIN, BOUND)))(
    'gets no request for a plain host: $label',
    async ({ named }) => {
      const client = await open(named);
      expect(codeOf(await client.exchange(request(named, '/')))).toBe('upstream_tls_failed');
      client.close();
      expect(misnamed.requests).toEqual([]);
    },
  );
});

/** Expects that every request carried the credential of `host` in its place, went to its address, and had no other credential. */
function expectCredential(host: string): void {
  for (const seen of world.upstream.requests) {
    expect(seen.headers('authorization')).toEqual([`Bearer ${SECRETS.get(host)}`]);
    expect(seen.serverName).toBe(host);
    const others = [...SECRETS].filter(([other, secret]) => other !== host && seen.text.includes(secret));
    expect(others).toEqual([]);
  }
}
