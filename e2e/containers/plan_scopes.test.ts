import { createServer, type Server } from 'node:http';
import { z } from 'zod';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { clientCredentialsProvider } from '../support/client_credentials.ts';
import { plantSecret, searchFiles } from '../support/planted_secret.ts';
import { listen } from '../support/tls_upstream.ts';
import { type ContainerWorld, describeContainers, startContainerWorld } from './container_world.ts';
import { PlanFolder, shellStep } from './plan_folder.ts';

// Steps of a plan that do less with a minted secret than its source allows, each with a token of its own from a real OpenID provider.

const HOST = 'api.example.test';
const KEY = plantSecret();
const FETCH = `for each in 1 2; do curl -sf https://${HOST}/items; done`;
let world: ContainerWorld;
let server: Server;
/** The scope of each token, as the provider has it. */
const savedToken = z.looseObject({ jti: z.string(), scope: z.string().default('') });
let issued: Map<string, string>;

const step = (id: string, ...scopes: string[]) => {
  const narrowed = scopes.map((scope) => `vault://ci/build:scopes=${scope}`);
  const trust = { effect: 'read', hosts: [HOST], ...(narrowed.length > 0 && { scopes: narrowed }) };
  return shellStep(id, FETCH, { trust });
};

describeContainers('a plan whose steps do less with a minted secret', () => {
  beforeAll(async () => {
    world = await startContainerWorld([HOST]);
    issued = new Map();
    server = createServer();
    const origin = `http://127.0.0.1:${await listen(server)}`;
    const provider = clientCredentialsProvider(origin, KEY);
    provider.on('client_credentials.saved', (token) => {
      const { jti, scope } = savedToken.parse(token);
      issued.set(jti, scope);
    });
    server.on('request', provider.callback());
    const fields = ['client_id=build', `token_url=${origin}/token`, 'scopes=repo:read repo:write'];
    const set = fields.flatMap((field) => ['--set', field]);
    await world.svc.ok(['secret', 'source', 'add', 'ci/build', 'client_credentials', '--stdin', ...set], {
      input: KEY,
    });
    await world.svc.binding({ host: HOST, scheme: 'bearer', credential_ref: 'vault://ci/build' });
  });
  afterAll(async () => {
    await world.stop();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  beforeEach(() => world.upstream.reset());

  it('gives each step a token of its own for what it names, with an end of its own, and keeps none', async () => {
    const folder = new PlanFolder(world, 'scopes');
    await folder.freeze([
      step('look', 'repo:read'),
      step('change', 'repo:write'),
      step('all'),
      step('again', 'repo:read'),
    ]);
    const run = await folder.run();
    expect(run).toMatchObject({ ok: true, steps: Array.from({ length: 4 }, () => ({ outcome: 'done' })) });
    const sent = world.upstream.requests.map((request) =>
      (request.header('authorization') ?? '').replace('Bearer ', ''),
    );
    const [look = '', , change = '', , all = '', , again = ''] = sent;
    expect(sent).toEqual([look, look, change, change, all, all, again, again]);
    expect(new Set(sent).size).toBe(4);
    const scopes = [look, change, all, again].map((token) => issued.get(token));
    expect(scopes).toEqual(['repo:read', 'repo:write', 'repo:read repo:write', 'repo:read']);
    const events = await world.svc.events();
    const mints = events.filter(({ type }) => type === 'control.secret.minted').map(({ data }) => data);
    const purposes = mints.map((data) => String(data['svc.control.minted_for']).replace(/ at .*/, ''));
    expect(purposes.toSorted()).toEqual([
      'the scope repo:read',
      'the scope repo:read',
      'the scope repo:read repo:write',
      'the scope repo:write',
    ]);
    expect(mints.every((data) => Date.parse(String(data['svc.control.until'])) > Date.now())).toBe(true);
    for (const token of [look, change, again]) {
      expect(searchFiles(world.svc.home, token).holding).toEqual([]);
      expect(JSON.stringify(events)).not.toContain(token);
    }
  });

  it('does not begin a step that names more than the source', async () => {
    const folder = new PlanFolder(world, 'more');
    await folder.freeze([step('look', 'repo:read'), step('more', 'admin')]);
    const run = await folder.run();
    expect(run.ok).toBe(false);
    expect(run.said).toContain('"admin" is not one of repo:read repo:write');
    const scopes = world.upstream.requests.map((request) =>
      (request.header('authorization') ?? '').replace('Bearer ', ''),
    );
    expect(new Set(scopes.map((token) => issued.get(token)))).toEqual(new Set(['repo:read']));
  });
});
