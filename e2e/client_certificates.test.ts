import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createSecureServer, connect as connectHttp2 } from 'node:http2';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls, type Server, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generate } from 'selfsigned';
import { listen } from '../machine/connection/listen.ts';
import { plantSecret, searchFiles, searchProcesses } from './support/planted_secret.ts';
import { connectThroughProxy, openTunnel } from './support/raw_client.ts';
import { curlInSession } from './support/session_curl.ts';
import { type Session, Svc } from './support/svc.ts';
import { createTestCa } from './support/test_ca.ts';
import { waitFor } from './support/wait_for.ts';

// Upstreams that accept only clients with a certificate, over HTTP/1.1 and over HTTP/2, and curl as the agent.

const ONE = 'one.example.test';
const READ = 'read.example.test';
const NONE = 'none.example.test';
const BOUND = 'bound.example.test';
const TWO = 'two.example.test';
const OLD = 'old.example.test';
const TOKEN = plantSecret();
const PASSPHRASE = 'planted passphrase';
const folder = mkdtempSync(join(tmpdir(), 'svc-mtls-'));
const at = (name: string): string => join(folder, name);

interface Handshake {
  readonly host: string;
  readonly client: string | null;
  readonly isResumed: boolean;
  readonly socket: TLSSocket;
}

let svc: Svc;
let servers: Server[];
const handshakes: Handshake[] = [];
const to = (host: string): Handshake[] => handshakes.filter((each) => each.host === host);

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
}

/** A certificate that is its own root, and its key. */
function makeClient(name: string, ...kind: string[]): void {
  const files = ['-keyout', `${name}.key`, '-out', `${name}.pem`];
  openssl('req', '-x509', ...kind, '-nodes', '-days', '30', '-subj', `/CN=${name}`, ...files);
}

const EC = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
const RSA = ['-newkey', 'rsa:2048'];

const curl = (...args: string[]) => curlInSession(svc, ['-w', ' %{http_code}', ...args]);
const addCert = (host: string, name: string, ...more: string[]): Promise<string> =>
  svc.ok(['cert', 'add', host, '--cert', at(`${name}.pem`), '--key', at(`${name}.key`), ...more]);
const lastEvent = async (host: string) =>
  (await svc.events()).findLast(({ data }) => data['svc.proxy.upstream.host'] === host);
/** The middle of a private key, which is in no other text. */
const keyLine = (name: string): string => readFileSync(at(`${name}.key`), 'utf8').split('\n')[1] ?? '';

beforeAll(async () => {
  makeClient('alice', ...EC);
  makeClient('bob', ...RSA);
  openssl(
    'pkcs12',
    '-export',
    '-in',
    'bob.pem',
    '-inkey',
    'bob.key',
    '-out',
    'bob.p12',
    '-passout',
    `pass:${PASSPHRASE}`,
  );
  openssl(
    'pkcs12',
    '-export',
    '-in',
    'alice.pem',
    '-inkey',
    'alice.key',
    '-out',
    'alice.p12',
    '-passout',
    'pass:other',
  );
  openssl('pkcs8', '-topk8', '-in', 'alice.key', '-out', 'sealed.key', '-passout', `pass:${PASSPHRASE}`);
  const day = 24 * 3600 * 1000;
  const dates = { notBeforeDate: new Date(Date.now() - 9 * day), notAfterDate: new Date(Date.now() - day) };
  const old = await generate([{ name: 'commonName', value: 'old' }], { keyType: 'ec', algorithm: 'sha256', ...dates });
  writeFileSync(at('old.pem'), old.cert);
  writeFileSync(at('old.key'), old.private);

  const ca = await createTestCa();
  const clients = ['alice', 'bob'].map((name) => readFileSync(at(`${name}.pem`)));
  const wanted = { requestCert: true, rejectUnauthorized: true, ca: clients };
  const hosts = [ONE, READ, NONE, BOUND, OLD];
  const http1 = createServer({ ...(await ca.issue(hosts)), ...wanted }, (request, response) => {
    if (request.url === '/stream') {
      response.write('first');
      return;
    }
    response.setHeader('set-cookie', 'planted=session');
    response.end(`${request.method} ${request.headers.authorization ?? 'no token'}`);
  });
  const http2 = createSecureServer({ ...(await ca.issue([TWO])), ...wanted }, (request, response) => {
    response.end(`${request.method} over ${request.httpVersion}`);
  });
  servers = [http1, http2];
  for (const server of servers) {
    server.on('secureConnection', (socket: TLSSocket) => {
      const subject = socket.getPeerCertificate().subject?.CN ?? null;
      const client = Array.isArray(subject) ? (subject[0] ?? null) : subject;
      const host = socket.servername || '';
      handshakes.push({ host, client, isResumed: socket.isSessionReused(), socket });
    });
  }
  const ports = [await listen(http1, 0, '127.0.0.1'), await listen(http2, 0, '127.0.0.1')];
  const resolve = [...hosts.map((host) => `${host}:127.0.0.1:${ports[0]}`), `${TWO}:127.0.0.1:${ports[1]}`];
  svc = await Svc.up({ upstreamCaFiles: [ca.file], resolve });
  await svc.secret('user/api', TOKEN);
  await svc.binding({ host: BOUND, scheme: 'bearer', credential_ref: 'vault://user/api' });
});
afterAll(async () => {
  await svc.stop();
  for (const server of servers) server.close();
  rmSync(folder, { recursive: true });
});

describe('a host that requires a client certificate', () => {
  it('is not reached without one, and the error says how to add it', async () => {
    const refused = await curl(`https://${NONE}/`);
    expect(refused.stdout).toContain('upstream_tls_failed');
    expect(refused.stdout).toContain(`svc cert add ${NONE} --cert FILE --key FILE`);
    expect(refused.stdout).toMatch(/requires a client certificate.* 502$/s);
  });

  it('is reached with one by passthrough, and the event names the secret and its version, never a key', async () => {
    await addCert(ONE, 'alice');
    const got = await curl('-i', `https://${ONE}/a`);
    expect(got.stdout).toMatch(/GET no token 200$/);
    expect(got.stdout).not.toContain('planted=session');
    expect(to(ONE).map(({ client }) => client)).toEqual(['alice']);
    expect(await lastEvent(ONE)).toMatchObject({
      type: 'sandbox.proxy.passthrough',
      data: {
        'svc.proxy.client_certificate.ref': `vault://user/client-certificates/${ONE}`,
        'svc.proxy.client_certificate.version': expect.stringMatching(/^sec_\w+\.1$/),
        'svc.proxy.reply.withheld': ['set-cookie'],
      },
    });
    expect(await svc.ok(['explain', 'GET', `https://${ONE}/a`])).toContain(
      `client certificate vault://user/client-certificates/${ONE}`,
    );
  });

  it('is reached with one beside the credential of a binding', async () => {
    await addCert(BOUND, 'alice');
    const got = await curl('-d', 'x=1', `https://${BOUND}/b`);
    expect(got.stdout).toBe(`POST Bearer ${'*'.repeat(TOKEN.length)} 200`);
    expect(to(BOUND).map(({ client }) => client)).toEqual(['alice']);
  });

  it('is reached over HTTP/2 by a client that speaks only that, and by curl if the record says so', async () => {
    await addCert(TWO, 'alice');
    const session = await svc.session();
    expect(await callHttp2(session)).toBe('GET over 2.0');
    expect(to(TWO)).toMatchObject([{ client: 'alice', isResumed: false }]);
    await session.end();
    const both = await curl('--http2', `https://${TWO}/`);
    expect(both.stdout).toContain(`svc cert add ${TWO} --http2`);
    await svc.ok(['cert', 'add', TWO, '--http2']);
    const got = await curl('--http2', '-w', ' %{http_version}', `https://${TWO}/`);
    expect(got.stdout).toBe('GET over 2.0 2');
  });

  it('is not dialled for a request that its certificate does not admit, by any client', async () => {
    await addCert(READ, 'alice', '--effect', 'read');
    for (const version of ['--http1.1', '--http2']) {
      const refused = await curl(version, '-d', 'x=1', `https://${READ}/`);
      expect(refused.stdout).toMatch(/effect_not_allowed.* 403$/s);
    }
    expect(await lastEvent(READ)).toMatchObject({
      type: 'sandbox.proxy.trust_denied',
      data: { 'svc.proxy.client_certificate.ref': `vault://user/client-certificates/${READ}` },
    });
    const named = await curl('-H', 'Host: other.example.test', `https://${READ}/`);
    expect(named.stdout).toMatch(/authority_mismatch.* 421$/s);
    expect(to(READ)).toEqual([]);
    expect((await curl('--http2', `https://${READ}/`)).stdout).toBe('GET no token 200');
    expect(await svc.ok(['explain', 'POST', `https://${READ}/`])).toContain('effect "read"');
  });

  it('gets a connection and a full handshake for each session, and none for another host', async () => {
    const before = to(ONE).length;
    const sessions = [await svc.session(), await svc.session()];
    for (const session of sessions) {
      const first = await connectThroughProxy(session, ONE);
      for (const path of ['/1', '/2']) {
        expect((await first.exchange(`GET ${path} HTTP/1.1\r\nHost: ${ONE}\r\n\r\n`)).status).toBe(200);
      }
      first.close();
      const second = await connectThroughProxy(session, ONE);
      expect((await second.exchange(`GET /3 HTTP/1.1\r\nHost: ${ONE}\r\n\r\n`)).status).toBe(200);
      second.close();
    }
    const made = to(ONE).slice(before);
    expect(made.map(({ isResumed }) => isResumed)).toEqual([false, false, false, false]);
    expect(to(NONE)).toEqual([]);
    for (const session of sessions) await session.end();
  });
});

describe('a certificate that is changed or withdrawn', () => {
  it('ends its connections at once, idle or in use, and the next one has the new version', async () => {
    const session = await svc.session();
    const idle = await connectThroughProxy(session, ONE);
    expect((await idle.exchange(`GET /idle HTTP/1.1\r\nHost: ${ONE}\r\n\r\n`)).status).toBe(200);
    const busy = await connectThroughProxy(session, ONE);
    busy.send(`GET /stream HTTP/1.1\r\nHost: ${ONE}\r\n\r\n`);
    expect((await busy.reader.until('first'))?.toString()).toContain('200');
    const opened = to(ONE).slice(-2);
    await svc.ok(['cert', 'add', ONE, '--pkcs12', at('bob.p12'), '--stdin'], { input: PASSPHRASE });
    await waitFor('the connections to end', () => Promise.resolve(opened.every(({ socket }) => socket.destroyed)));
    const got = await curl(`https://${ONE}/new`);
    expect(got.stdout).toBe('GET no token 200');
    expect(to(ONE).at(-1)?.client).toBe('bob');

    const last = await connectThroughProxy(session, ONE);
    expect((await last.exchange(`GET /last HTTP/1.1\r\nHost: ${ONE}\r\n\r\n`)).status).toBe(200);
    const count = to(ONE).length;
    await svc.ok(['cert', 'rm', ONE]);
    await waitFor('the last connection to end', () => Promise.resolve(to(ONE).at(-1)?.socket.destroyed === true));
    expect((await curl(`https://${ONE}/gone`)).stdout).toContain('requires a client certificate');
    expect(to(ONE).length).toBe(count);
    for (const each of [idle, busy, last]) each.close();
    await session.end();
  });

  it('whose time is over is refused before its host is dialled, with the host and the date', async () => {
    await svc.secret('user/old', readFileSync(at('old.pem'), 'utf8') + readFileSync(at('old.key'), 'utf8'));
    await svc.ok(['cert', 'add', OLD, '--credential', 'vault://user/old']);
    const refused = await curl(`https://${OLD}/`);
    expect(refused.stdout).toMatch(/credential_unavailable.*old\.example\.test expired on 20\d\d-.* 503$/s);
    expect(refused.stdout).toContain(`svc cert add ${OLD} --cert FILE --key FILE`);
    expect(await lastEvent(OLD)).toMatchObject({
      type: 'sandbox.proxy.rejected',
      data: {
        'svc.proxy.client_certificate.ref': 'vault://user/old',
        'svc.proxy.client_certificate.version': expect.stringMatching(/^sec_\w+\.1$/),
      },
    });
    expect(to(OLD)).toEqual([]);
  });
});

describe('what svc cert add refuses, before anything is stored', () => {
  it.each([
    [() => ['--cert', at('alice.pem'), '--key', at('bob.key')], 'a private key that does not match the certificate'],
    [() => ['--cert', at('alice.key')], 'has no PEM certificate'],
    [() => ['--cert', at('alice.pem')], 'has no PEM private key'],
    [() => ['--cert', at('old.pem'), '--key', at('old.key')], 'a certificate that expired on'],
    [() => ['--pkcs12', at('alice.p12'), '--stdin'], 'cannot be opened with this passphrase'],
    [() => ['--pkcs12', at('alice.pem'), '--stdin'], 'is no PKCS#12 file'],
    [() => ['--cert', at('none.pem')], 'it does not exist'],
    [() => [], 'no certificate was given'],
  ])('case %#: %s', async (args, problem) => {
    const refused = await svc.cli(['cert', 'add', NONE, ...args()], { input: PASSPHRASE });
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(problem)]);
    expect((await svc.api('GET', '/v1/client-certificates')).body).not.toMatchObject({
      items: expect.arrayContaining([expect.objectContaining({ host: NONE })]),
    });
  });

  it('takes an encrypted key with its passphrase, and a key on a curve in PKCS#12', async () => {
    const args = ['--cert', at('alice.pem'), '--key', at('sealed.key'), '--stdin', '--json'];
    const added: unknown = JSON.parse(await svc.ok(['cert', 'add', NONE, ...args], { input: PASSPHRASE }));
    expect(added).toMatchObject({ host: NONE, credential_ref: `vault://user/client-certificates/${NONE}` });
    await svc.ok(['cert', 'add', NONE, '--pkcs12', at('alice.p12'), '--stdin'], { input: 'other' });
    expect((await curl(`https://${NONE}/`)).stdout).toBe('GET no token 200');
    const deletion = await svc.cli(['secret', 'rm', `user/client-certificates/${NONE}`, '--yes']);
    expect([deletion.code, deletion.stdout + deletion.stderr]).toEqual([1, expect.stringContaining(NONE)]);
  });
});

it('the key of a certificate is in no file of svc, no process, and nothing that the agent gets', async () => {
  await addCert(ONE, 'alice');
  const seen = await svc.ok(['run', '--', 'sh', '-c', `env; curl -sS -v https://${ONE}/ 2>&1`]);
  const secrets = [keyLine('alice'), keyLine('bob'), PASSPHRASE];
  for (const secret of secrets) expect(seen).not.toContain(secret);
  expect(searchFiles(svc.home, secrets).holding).toEqual([]);
  expect(searchProcesses(secrets).holding).toEqual([]);
  expect(JSON.stringify(await svc.events())).not.toContain(keyLine('alice'));
  expect(svc.output).not.toContain(keyLine('alice'));
});

async function callHttp2(session: Session): Promise<string> {
  const { connection } = await openTunnel(session, `${TWO}:443`);
  await connection.reader.release();
  const ca = session.caPem;
  const socket = connectTls({ socket: connection.socket, servername: TWO, ca, ALPNProtocols: ['h2'] });
  const http2 = connectHttp2(`https://${TWO}`, { createConnection: () => socket });
  const stream = http2.request({ ':path': '/' });
  let body = '';
  stream.on('data', (data: Buffer) => (body += data.toString()));
  stream.end();
  await new Promise<void>((resolve) => stream.on('close', resolve));
  http2.destroy();
  return body;
}
