import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { plantSecret } from './support/planted_secret.ts';
import { connectThroughProxy } from './support/raw_client.ts';
import type { Session } from './support/svc.ts';
import type { SeenRequest } from './support/tls_upstream.ts';
import { startWorld, type World } from './support/world.ts';

// Placeholders that `svc binding add` makes, which the agent uses in place of its credential (specification section 2, Emit
// mechanisms), and several bindings of one host: accounts chosen by placeholder, and bindings in different places.

const GITHUB = 'api.github.com';
const SUPABASE = 'abc.supabase.co';
const GITLAB = 'gitlab.example.test';
const WORK = plantSecret();
const HOME = plantSecret();
let world: World;
let session: Session;

async function add(host: string, args: readonly string[]): Promise<void> {
  await world.svc.ok(['binding', 'add', host, ...args]);
}

beforeAll(async () => {
  world = await startWorld([GITHUB, SUPABASE, GITLAB]);
  await world.svc.secret('user/work', WORK);
  await world.svc.secret('user/home', HOME);
  const bearer = ['--scheme', 'bearer', '--emit', 'sentinel-swap'];
  await add(GITHUB, [...bearer, '--credential', 'vault://user/work', '--sentinel-env', 'WORK_TOKEN']);
  await add(GITHUB, [...bearer, '--credential', 'vault://user/home', '--sentinel-env', 'HOME_TOKEN']);
  await add(SUPABASE, [...bearer, '--credential', 'vault://user/work', '--sentinel-env', 'SUPABASE_KEY']);
  await add(GITLAB, [
    '--scheme',
    'header-template',
    '--header',
    'PRIVATE-TOKEN',
    '--template',
    '{token}',
    '--credential',
    'vault://user/work',
  ]);
  await add(GITLAB, [
    '--scheme',
    'basic',
    '--username',
    'oauth2',
    '--emit',
    'sentinel-swap',
    '--credential',
    'vault://user/home',
    '--sentinel-env',
    'GIT_TOKEN',
  ]);
});
afterAll(() => world.stop());
beforeEach(async () => {
  world.upstream.reset();
  session = await world.svc.session();
});

/** The placeholder that a launch puts into this variable of the agent. */
function placeholder(env: string): string {
  const found = session.sentinels.find((sentinel) => sentinel.env === env);
  if (found === undefined) throw new Error(`no placeholder for ${env}`);
  return found.value;
}

/** Sends one request; returns what the upstream received, and the types of the events. */
async function send(host: string, lines: readonly string[], target = '/', body = '') {
  const client = await connectThroughProxy(session, host);
  const length = body === '' ? [] : [`Content-Length: ${body.length}`];
  const start = `${body === '' ? 'GET' : 'POST'} ${target} HTTP/1.1`;
  await client.exchange([start, `Host: ${host}`, ...lines, ...length, '', ''].join('\r\n') + body);
  client.close();
  await session.end();
  const types = (await world.svc.eventsOf(session)).map(({ type }) => type);
  return { seen: world.upstream.last(), types };
}

const basic = (password: string): string => `Authorization: Basic ${Buffer.from(`me:${password}`).toString('base64')}`;
const secretsIn = (seen: SeenRequest): string[] =>
  [WORK, HOME].filter((secret) => {
    const payloads = ['oauth2', 'me'].map((user) => Buffer.from(`${user}:${secret}`).toString('base64'));
    return [secret, ...payloads].some((form) => seen.text.includes(form));
  });

describe('a placeholder that svc binding add makes', () => {
  it('has the form of the service’s own tokens', () => {
    expect(placeholder('WORK_TOKEN')).toMatch(/^ghp_[A-Za-z0-9]{36}$/);
    expect(placeholder('GIT_TOKEN')).not.toBe('');
  });

  it('for a service of JSON web tokens is one that a client can read, and is swapped', async () => {
    const token = placeholder('SUPABASE_KEY');
    const [header = '', claims = ''] = token.split('.').map((part) => Buffer.from(part, 'base64url').toString());
    expect(JSON.parse(header)).toMatchObject({ typ: 'JWT' });
    expect(JSON.parse(claims)).toHaveProperty('exp');
    const { seen } = await send(SUPABASE, [`Authorization: Bearer ${token}`]);
    expect(seen.headers('authorization')).toEqual([`Bearer ${WORK}`]);
  });

  it('is inert everywhere except in its place', async () => {
    const token = placeholder('SUPABASE_KEY');
    const body = JSON.stringify({ messages: [{ content: `my key is ${token}, and Bearer ${token}` }] });
    const { seen } = await send(SUPABASE, [`apikey: ${token}`, `Cookie: key=${token}`], `/x?apikey=${token}`, body);
    expect(seen.target).toBe(`/x?apikey=${token}`);
    expect([seen.header('apikey'), seen.header('cookie')]).toEqual([token, `key=${token}`]);
    expect(seen.body.data.toString()).toBe(body);
    expect(seen.headers('authorization')).toEqual([`Bearer ${WORK}`]);
  });

  it('of one host is inert at another', async () => {
    const { seen, types } = await send(SUPABASE, [`Authorization: Bearer ${placeholder('WORK_TOKEN')}`]);
    expect(seen.headers('authorization')).toEqual([`Bearer ${placeholder('WORK_TOKEN')}`]);
    expect(types).toEqual(['sandbox.proxy.foreign_credential_kept']);
  });
});

describe('several accounts on one host', () => {
  it.each([
    { env: 'WORK_TOKEN', secret: WORK, word: 'Bearer' },
    { env: 'HOME_TOKEN', secret: HOME, word: 'token' },
  ])('are chosen by the placeholder of $env', async ({ env, secret, word }) => {
    const { seen, types } = await send(GITHUB, [`Authorization: ${word} ${placeholder(env)}`]);
    expect(seen.headers('authorization')).toEqual([`Bearer ${secret}`]);
    expect(secretsIn(seen)).toEqual([secret]);
    expect(types).toEqual(['sandbox.proxy.binding_injected']);
  });

  it('are chosen for each request of a tunnel, each on its own connection', async () => {
    const client = await connectThroughProxy(session, GITHUB);
    const envs = ['WORK_TOKEN', 'HOME_TOKEN', 'WORK_TOKEN', 'HOME_TOKEN'];
    for (const env of envs) {
      const head = `GET / HTTP/1.1\r\nHost: ${GITHUB}\r\nAuthorization: Bearer ${placeholder(env)}\r\n\r\n`;
      expect((await client.exchange(head)).status).toBe(200);
    }
    client.close();
    const seen = world.upstream.requests.map((one) => [one.header('authorization'), one.connection]);
    const [first, second] = [world.upstream.requests[0]?.connection, world.upstream.requests[1]?.connection];
    expect(first).not.toBe(second);
    expect(seen).toEqual([
      [`Bearer ${WORK}`, first],
      [`Bearer ${HOME}`, second],
      [`Bearer ${WORK}`, first],
      [`Bearer ${HOME}`, second],
    ]);
  });

  it.each([
    { what: 'no placeholder', lines: [] },
    { what: 'a token of its own', lines: ['Authorization: Bearer of-its-own'] },
    { what: 'no placeholder in the place', lines: ['X-Note: PLACEHOLDER'] },
  ])('are not used for a request with $what', async ({ lines }) => {
    const sent = lines.map((line) => line.replace('PLACEHOLDER', placeholder('WORK_TOKEN')));
    const { seen, types } = await send(GITHUB, sent);
    expect(secretsIn(seen)).toEqual([]);
    expect(seen.lines.slice(1)).toEqual(sent);
    expect(types).toEqual(['sandbox.proxy.foreign_credential_kept']);
  });
});

describe('bindings of one host in different places', () => {
  it('adds no credential beside one that the client sent in another place', async () => {
    const { seen, types } = await send(GITLAB, [basic('of-its-own')], '/group/repository.git/info/refs');
    expect(seen.lines.slice(1)).toEqual([basic('of-its-own')]);
    expect(types).toEqual(['sandbox.proxy.foreign_credential_kept']);
  });

  it('adds the one without a placeholder if the client sent none', async () => {
    const { seen } = await send(GITLAB, [], '/api/v4/user');
    expect(seen.lines.slice(1)).toEqual([`PRIVATE-TOKEN: ${WORK}`]);
  });

  it('swaps the placeholder in its place and adds no other', async () => {
    const { seen } = await send(GITLAB, [basic(placeholder('GIT_TOKEN'))]);
    expect(seen.lines.slice(1)).toEqual([basic(HOME)]);
  });
});
