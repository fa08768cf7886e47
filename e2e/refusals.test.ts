import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { plantSecret } from './support/planted_secret.ts';
import {
  connectPlain,
  connectRequest,
  connectThroughProxy,
  openTunnel,
  secure,
  type SeenReply,
} from './support/raw_client.ts';
import { refusal, refusalOf } from './support/refusal_of.ts';
import type { Session } from './support/svc.ts';
import { startWorld, type World } from './support/world.ts';

// The table of refusals of design section 5, for errors before a tunnel is open: status, code and audit event.

const PLAIN = 'plain.example.test';
let world: World;
let session: Session;

beforeAll(async () => {
  world = await startWorld([PLAIN]);
});
afterAll(() => world.stop());
beforeEach(async () => {
  world.upstream.reset();
  session = await world.svc.session();
});

async function countUnauthenticated(): Promise<number> {
  const events = await world.svc.events();
  return events.filter((event) => event.data['svc.proxy.reason'] === 'proxy_authentication_required').length;
}

/** The answer to a request for an IP literal: to its CONNECT, or to the request inside the tunnel. */
async function askLiteral(literal: string): Promise<SeenReply> {
  const tunnel = await openTunnel(session, `${literal}:443`);
  if (tunnel.reply.status !== 200) return tunnel.reply;
  const client = await secure(tunnel.connection, session, literal, { servername: '' });
  const seen = await client.exchange(`GET / HTTP/1.1\r\nHost: ${literal}\r\n\r\n`);
  client.close();
  return seen;
}

describe('the proxy credential', () => {
  it.each([
    ['is missing', null],
    ['is not Basic', 'Bearer abc'],
    ['is not base64', 'Basic !!!'],
    ['has another token', 'token'],
    ['has another session', 'session'],
    ['has no colon', `Basic ${Buffer.from('nothing').toString('base64')}`],
  ])('is refused with 407 when it %s', async (_, given) => {
    const wrong = {
      token: connectRequest(`${PLAIN}:443`, { sessionId: session.sessionId, token: 'x'.repeat(session.token.length) }),
      session: connectRequest(`${PLAIN}:443`, { sessionId: 'ses_00000000000000000000000000', token: session.token }),
    };
    const written = given === null ? '' : `Proxy-Authorization: ${given}\r\n`;
    const request =
      given === 'token' || given === 'session'
        ? wrong[given]
        : `CONNECT ${PLAIN}:443 HTTP/1.1\r\nHost: ${PLAIN}:443\r\n${written}\r\n`;
    const client = await connectPlain(session.proxyUrl);
    const seen = await client.exchange(request, 'CONNECT');
    client.close();
    expect(seen.status).toBe(407);
    expect(seen.json()).toMatchObject({ error: { code: 'proxy_authentication_required' } });
    expect(seen.header('proxy-authenticate')).toBe('Basic realm="svc"');
    expect(world.upstream.requests).toEqual([]);
  });

  it('is refused after its session has ended', async () => {
    await session.end();
    const tunnel = await openTunnel(session, `${PLAIN}:443`);
    expect(tunnel.reply.status).toBe(407);
    tunnel.connection.close();
  });

  it('of an ended session also ends its open tunnels', async () => {
    const client = await connectThroughProxy(session, PLAIN);
    expect((await client.exchange(`GET / HTTP/1.1\r\nHost: ${PLAIN}\r\n\r\n`)).status).toBe(200);
    await session.end();
    client.send(`GET /late HTTP/1.1\r\nHost: ${PLAIN}\r\n\r\n`);
    expect(await client.reader.some()).toBeNull();
    expect(world.upstream.requests.map(({ target }) => target)).toEqual(['/']);
  });

  it('is recorded when it is refused', async () => {
    const before = await countUnauthenticated();
    const client = await connectPlain(session.proxyUrl);
    await client.exchange(`CONNECT ${PLAIN}:443 HTTP/1.1\r\nHost: ${PLAIN}:443\r\n\r\n`, 'CONNECT');
    client.close();
    await session.end();
    expect(await countUnauthenticated()).toBe(before + 1);
  });
});

describe('a proxy request that is not CONNECT', () => {
  it.each(['http', 'https'])('with an absolute %s target is refused', async (scheme) => {
    const credentials = Buffer.from(`${session.sessionId}:${session.token}`).toString('base64');
    const client = await connectPlain(session.proxyUrl);
    const head = `GET ${scheme}://${PLAIN}/ HTTP/1.1\r\nHost: ${PLAIN}\r\nProxy-Authorization: Basic ${credentials}\r\n\r\n`;
    const seen = await client.exchange(head);
    client.close();
    expect(await refusalOf(world.svc, session, seen)).toEqual(refusal(403, 'non_connect_proxy_request'));
  });

  it('never reaches the local API', async () => {
    const client = await connectPlain(session.proxyUrl);
    const seen = await client.exchange('GET /v1/health HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic abc\r\n\r\n');
    client.close();
    expect(seen.status).toBe(407);
  });
});

describe('a session', () => {
  it('has its own CA, which other sessions do not trust', async () => {
    const other = await world.svc.session();
    expect(other.caPem).not.toBe(session.caPem);
    await expect(connectThroughProxy({ ...session, caPem: other.caPem }, PLAIN)).rejects.toThrow(
      /certificate|self-signed|signature/,
    );
  });

  it('cannot open or list sessions with its token', async () => {
    for (const token of [session.token, 'svc_local_nothing', '']) {
      const headers = { authorization: `Bearer ${token}` };
      for (const method of ['GET', 'POST']) {
        const seen = await fetch(`${world.svc.runFile.proxy_url}/v1/sandbox-proxy/sessions`, { method, headers });
        expect([401, 403]).toContain(seen.status);
      }
      const control = await fetch(`${world.svc.runFile.control_url}/v1/secrets`, { headers });
      expect(control.status).toBe(401);
    }
  });
});

describe('a CONNECT', () => {
  it.each([
    [PLAIN, 400, 'invalid_connect_target'],
    [`${PLAIN}:`, 400, 'invalid_connect_target'],
    [`${PLAIN}:0`, 400, 'invalid_connect_target'],
    [`${PLAIN}:65536`, 400, 'invalid_connect_target'],
    [`user@${PLAIN}:443`, 400, 'invalid_connect_target'],
    [`https://${PLAIN}:443`, 400, 'invalid_connect_target'],
    [`/${PLAIN}:443`, 400, 'invalid_connect_target'],
    [':443', 400, 'invalid_connect_target'],
    ['a_b..example.test:443', 400, 'invalid_connect_target'],
    [`${PLAIN}:80`, 403, 'connect_port_not_allowed'],
    [`${PLAIN}:8443`, 403, 'connect_port_not_allowed'],
    [`${PLAIN}:22`, 403, 'connect_port_not_allowed'],
  ])('to %s is refused', async (target, status, code) => {
    const tunnel = await openTunnel(session, target);
    tunnel.connection.close();
    expect(await refusalOf(world.svc, session, tunnel.reply)).toEqual(refusal(status, code));
  });
});

describe('an IP literal', () => {
  it.each([
    '127.0.0.1',
    '10.1.2.3',
    '172.16.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '127.1',
    '0x7f.1',
    '2130706433',
    '0177.0.0.1',
    '[::1]',
    '[fe80::1]',
    '[fd00::1]',
    '[::ffff:127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
  ])('%s of a private range is refused on passthrough', async (literal) => {
    const seen = await askLiteral(literal);
    expect(await refusalOf(world.svc, session, seen)).toEqual(refusal(403, 'passthrough_target_not_allowed'));
  });
});

describe('a session with allowed hosts', () => {
  const text = z.string();
  const made = z.object({ session_id: text, token: text, ca_pem_path: text, ca_bundle_path: text });

  /** A session as `svc run --allow-only` asks for one. */
  async function openLimitedSession(lists: object): Promise<Session> {
    const me = z.object({ policy_version: z.number() }).parse((await world.svc.api('GET', '/v1/me')).body);
    const asked = { min_policy_version: me.policy_version, ...lists };
    const { body } = await world.svc.local('POST', '/v1/sandbox-proxy/sessions', asked);
    const { session_id: sessionId, token, ca_pem_path: path, ca_bundle_path: caBundle } = made.parse(body);
    const proxyUrl = world.svc.runFile.proxy_url;
    const end = async (): Promise<void> =>
      void (await world.svc.local('DELETE', `/v1/sandbox-proxy/sessions/${sessionId}`));
    return { sessionId, token, proxyUrl, caPem: readFileSync(path, 'utf8'), caBundle, sentinels: [], end };
  }

  it('is what svc run --allow-only opens, and its last line names what was refused', async () => {
    const script = `for host in ${PLAIN} other.example.test; do curl -s -o /dev/null -w '%{http_connect} ' "https://$host/"; done; true`;
    const done = await world.svc.cli(['run', '--allow-only', PLAIN, '--', 'sh', '-c', script]);
    expect(done).toMatchObject({ code: 0, stdout: '200 403 ' });
    expect(done.stderr).toMatch(
      /^svc: refused a host that the agent chose: other\.example\.test \(1\)\. To allow some of them here: svc allow --from-session ses_\w{26} --folder \S+\n$/,
    );
  });

  it('reaches bound hosts and allowed ones, and refuses every other before TLS', async () => {
    const code = 'egress_host_not_allowed';
    await session.end();
    session = await openLimitedSession({ allowed_hosts: [] });
    const denied = await openTunnel(session, `${PLAIN}:443`);
    denied.connection.close();
    expect(await refusalOf(world.svc, session, denied.reply)).toEqual({
      status: 403,
      code,
      events: [
        ['sandbox.proxy.session_reach', undefined],
        ['sandbox.proxy.trust_denied', code],
      ],
    });
    expect(world.upstream.requests).toEqual([]);

    for (const lists of [{ allowed_hosts: ['*.example.test'] }, { named_hosts: [PLAIN] }]) {
      session = await openLimitedSession(lists);
      expect((await askLiteral(PLAIN)).status).toBe(200);
      await session.end();
    }

    await world.svc.secret('user/plain', plantSecret());
    const binding = await world.svc.binding({ host: PLAIN, scheme: 'bearer', credential_ref: 'vault://user/plain' });
    session = await openLimitedSession({ allowed_hosts: [] });
    const client = await connectThroughProxy(session, PLAIN);
    expect((await client.exchange(`GET / HTTP/1.1\r\nHost: ${PLAIN}\r\n\r\n`)).status).toBe(200);
    expect((await world.svc.api('DELETE', `/v1/host-bindings/${binding}`)).status).toBe(204);
    // The kept connection ends with the binding, and no other is opened.
    expect(await client.reader.some()).toBeNull();
    const late = await openTunnel(session, `${PLAIN}:443`);
    late.connection.close();
    expect(late.reply.status).toBe(403);
  });
});
