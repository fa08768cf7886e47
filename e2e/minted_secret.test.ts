import { createServer, type IncomingMessage, type Server } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clientCredentialsProvider } from './support/client_credentials.ts';
import { plantSecret, searchFiles } from './support/planted_secret.ts';
import { connectThroughProxy } from './support/raw_client.ts';
import { verifySigV4 } from './support/sigv4_verifier.ts';
import { StsStub } from './support/sts_stub.ts';
import { listen } from './support/tls_upstream.ts';
import { startWorld, type World } from './support/world.ts';

// A secret that an OpenID provider mints, from the command that adds its source to the request that has its value.

const HOST = 'minted.example.test';
const AWS_HOST = 's3.minted.example.test';
const CALLER = 'AKIAE2EMINTED0000001';
const KEY = plantSecret();
let world: World;
let server: Server;
let origin: string;
let minted: number;
let sts: StsStub;

beforeAll(async () => {
  world = await startWorld([HOST, AWS_HOST]);
  sts = new StsStub({ callers: new Map([[CALLER, KEY]]), now: Date.now });
  server = createServer();
  origin = `http://127.0.0.1:${await listen(server)}`;
  const provider = clientCredentialsProvider(origin, KEY);
  minted = 0;
  const answer = provider.callback();
  server.on('request', (request, response) => {
    if (request.url === '/token') minted += 1;
    if (request.url !== '/sts') return answer(request, response);
    return void answerSts(request).then(({ status, body }) => response.writeHead(status).end(body));
  });
});
afterAll(async () => {
  await world.stop();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function answerSts(request: IncomingMessage) {
  const headers = (name: string) => request.headersDistinct[name] ?? [];
  return sts.answer({ method: 'POST', target: '/sts', headers, body: await buffer(request) });
}

async function cli(args: readonly string[], input = ''): Promise<string> {
  const { code, stdout, stderr } = await world.svc.cli(args, { input });
  expect([code, stderr]).toEqual([0, '']);
  return stdout;
}

async function send(host = HOST, lines = ''): Promise<number> {
  const session = await world.svc.session();
  const client = await connectThroughProxy(session, host);
  const { status } = await client.exchange(`GET / HTTP/1.1\r\nHost: ${host}\r\n${lines}\r\n`);
  client.close();
  await session.end();
  return status;
}

it('a minted secret is in the requests of its binding, in the audit log by its purpose, and in no file', async () => {
  const set = ['client_id=build', `token_url=${origin}/token`, 'scopes=repo:read'].flatMap((field) => ['--set', field]);
  await cli(['secret', 'source', 'add', 'ci/build', 'client_credentials', '--stdin', ...set], KEY);
  const tested = await cli(['secret', 'source', 'test', 'ci/build']);
  expect(tested).toMatch(
    /^a value for the scope repo:read at 127\.0\.0\.1:\d+ for the client build, until .*Z; it was discarded; its provider accepts it until then\n$/,
  );
  await world.svc.binding({ host: HOST, scheme: 'bearer', credential_ref: 'vault://ci/build' });
  expect(await Promise.all(Array.from({ length: 5 }, () => send()))).toEqual([200, 200, 200, 200, 200]);
  expect(minted).toBe(2);
  const sent = new Set(world.upstream.requests.map((request) => request.header('authorization')));
  expect(sent.size).toBe(1);
  const token = String([...sent][0]).slice('Bearer '.length);
  expect(token).toMatch(/^[\w-]{30,}$/);
  const events = await world.svc.events();
  const mints = events.filter(({ type }) => type === 'control.secret.minted');
  expect(mints.map(({ data }) => data['svc.control.minted_for'])).toEqual(
    mints.map(() => expect.stringContaining('repo:read')),
  );
  expect(mints).toHaveLength(2);
  for (const secret of [token, KEY]) {
    expect(searchFiles(world.svc.home, secret).holding).toEqual([]);
    expect(JSON.stringify(events)).not.toContain(secret);
  }
});

it('a session uses less of a minted secret, which only that session is given', async () => {
  world.upstream.reset();
  const set = ['client_id=build', `token_url=${origin}/token`, 'scopes=repo:read repo:write'];
  const fields = set.flatMap((field) => ['--set', field]);
  await cli(['secret', 'source', 'add', 'ci/build', 'client_credentials', '--stdin', ...fields], KEY);
  const ask = ['--', 'curl', '-sS', '-o', '/dev/null', `https://${HOST}/`];
  const scope = ['--scope', 'ci/build:scopes=repo:read'];
  expect((await world.svc.cli(['run', ...ask])).code).toBe(0);
  const before = minted;
  expect(await world.svc.cli(['run', ...scope, ...ask])).toMatchObject({ code: 0, stderr: '' });
  expect((await world.svc.cli(['run', ...scope, ...ask])).code).toBe(0);
  expect((await world.svc.cli(['run', ...ask])).code).toBe(0);
  expect(minted - before).toBe(2);
  const [wide, first, second, again] = world.upstream.requests.map((request) => request.header('authorization'));
  expect([new Set([wide, first, second]).size, again]).toEqual([3, wide]);
  const refused = await world.svc.cli(['run', '--scope', 'ci/build:scopes=admin', ...ask]);
  expect([refused.code, refused.stderr]).toEqual([125, expect.stringMatching(/--scope: .*"admin" is not one of/)]);
  expect(world.upstream.requests).toHaveLength(4);
  const purposes = (await world.svc.events())
    .filter(({ type }) => type === 'control.secret.minted')
    .map(({ data }) => String(data['svc.control.minted_for']));
  expect(purposes.filter((purpose) => purpose.startsWith('the scope repo:read at'))).toHaveLength(2 + 2);
  for (const value of [first, second].map((header) => String(header).slice('Bearer '.length))) {
    expect(searchFiles(world.svc.home, value).holding).toEqual([]);
  }
});

it('a role of AWS is in the signatures of its binding: the three parts of one key set, and in no file', async () => {
  world.upstream.reset();
  const role = ['role_arn=arn:aws:iam::123456789012:role/deploy', 'region=eu-north-1', `sts_url=${origin}/sts`];
  const set = [...role, `access_key_id=${CALLER}`, 'tags=Project=svc'].flatMap((field) => ['--set', field]);
  await cli(['secret', 'source', 'add', 'aws/deploy', 'aws_assume_role', '--stdin', ...set], KEY);
  const bind = ['binding', 'add', AWS_HOST, '--scheme', 'sigv4-resign', '--credential', 'vault://aws/deploy'];
  await cli([...bind, '--access-key-id', 'minted', '--region', 'eu-north-1', '--service', 's3']);
  const placeholder = `Authorization: AWS4-HMAC-SHA256 Credential=minted/20200101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=${'0'.repeat(64)}\r\n`;
  expect(await Promise.all([send(AWS_HOST), send(AWS_HOST, placeholder), send(AWS_HOST)])).toEqual([200, 200, 200]);
  expect(sts.issued.size).toBe(1);
  const secrets = new Map([...sts.issued].map(([id, { secret }]) => [id, secret]));
  for (const { method, target, body, ...request } of world.upstream.requests) {
    const headers = (name: string) => request.headers(name);
    const verdict = verifySigV4({ method, target, headers, body: body.data }, secrets, Date.now());
    expect(verdict).toMatchObject({ ok: true, region: 'eu-north-1', service: 's3' });
    const tokens = verdict.ok ? [sts.issued.get(verdict.accessKeyId)?.token] : [];
    expect(request.headers('x-amz-security-token')).toEqual(tokens);
  }
  const events = JSON.stringify(await world.svc.events());
  expect(events).toContain('the role arn:aws:iam::123456789012:role/deploy as svc');
  for (const secret of [...sts.issued.values()].flatMap(({ secret: key, token }) => [key, token])) {
    expect(searchFiles(world.svc.home, secret).holding).toEqual([]);
    expect(events).not.toContain(secret);
  }
});

it('a provider that refuses ends the requests with 503, and the reason is shown', async () => {
  const set = ['client_id=nobody', `token_url=${origin}/token`].flatMap((field) => ['--set', field]);
  await cli(['secret', 'source', 'add', 'ci/build', 'client_credentials', '--stdin', ...set], KEY);
  expect(await send()).toBe(503);
  expect(await cli(['secret', 'source', 'show', 'ci/build'])).toMatch(/last failure: .*127\.0\.0\.1/);
});
