import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { contentOf, entriesUnder } from '../support/files_under.ts';
import { SVC } from '../support/program.ts';
import { Svc } from '../support/svc.ts';
import { ITEMS_SPEC } from './connector_samples.ts';
import { type HostedControlPlane, startHostedControlPlane } from './hosted_control_plane.ts';
import { run, type Running, waitForEnd } from './programs.ts';

/** Issue 19: a local vault moves into a hosted control plane by one command. */
const VALUE = `planted-${crypto.randomUUID()}`;

const KINDS = ['secret', 'binding', 'tunnel_host', 'client_certificate', 'connector', 'mcp_server'];

let local: Svc;
let hosted: HostedControlPlane;

const result = z.object({
  items: z.array(z.object({ kind: z.string(), name: z.string(), state: z.string(), removed: z.boolean() })),
});
const move = (...args: string[]) =>
  run(SVC, ['--home', local.home, '--json', 'vault', 'move', '--to', hosted.url, ...args], {});
const statesOf = (text: string) => {
  const line = text.split('\n').find((each) => each.startsWith('{')) ?? '';
  return result.parse(JSON.parse(line)).items.map(({ kind, state, removed }) => [kind, state, removed]);
};
const hostedCall = async (path: string): Promise<string> =>
  (await fetch(hosted.url + path, { headers: { cookie: hosted.cookie } })).text();
const everythingSaid: Running[] = [];
async function ended(program: Running): Promise<string> {
  everythingSaid.push(program);
  return waitForEnd(program);
}

beforeAll(async () => {
  [local, hosted] = await Promise.all([Svc.up(), startHostedControlPlane()]);
  await local.secret('user/key', VALUE);
  await local.binding({
    host: 'api.example.com',
    scheme: 'bearer',
    credential_ref: 'vault://user/key',
    effect: 'read',
  });
  await local.api('POST', '/v1/tunnel-hosts', { host: 'pinned.example.com' });
  await local.api('POST', '/v1/client-certificates', { host: 'mtls.example.com', credential_ref: 'vault://user/key' });
  const connector = await local.api('POST', '/v1/connectors', ITEMS_SPEC);
  const { id } = z.object({ id: z.string() }).parse(connector.body);
  await local.api('PUT', `/v1/connectors/${id}/credential`, { kind: 'api_key', value: VALUE });
  const server = { name: 'moved', command: ['a-server'], env: { TOKEN: 'vault://mcp-servers/{id}/TOKEN' } };
  const made = z.object({ id: z.string() }).parse((await local.api('POST', '/v1/mcp-servers', server)).body);
  const credential = { env_var_name: 'TOKEN', secret_value: VALUE };
  await local.api('POST', `/v1/mcp-servers/${made.id}/credentials`, credential);
});
afterAll(async () => {
  await local.stop();
  await hosted.stop();
});

test('svc vault move --dry-run signs in, shows the list, and sends nothing', async () => {
  const program = move('--dry-run');
  await hosted.approve(program);
  expect(statesOf(await ended(program))).toEqual(KINDS.map((kind) => [kind, 'new', false]));
  expect(JSON.parse(await hostedCall('/v1/secrets'))).toMatchObject({ items: [] });
});

test('with a clash nothing moves, and the list names it', async () => {
  const headers = { cookie: hosted.cookie, origin: hosted.url, 'content-type': 'application/json' };
  const body = JSON.stringify({ path: 'user/key', value: 'another value' });
  await fetch(`${hosted.url}/v1/secrets`, { method: 'POST', headers, body });
  const program = move('--yes');
  await ended(program);
  expect(program.output()).toContain('nothing was moved: 1 of your things clash');
  expect(program.output()).toContain('secret user/key: another secret is at this path there');
  await fetch(`${hosted.url}/v1/secrets/user%2Fkey`, { method: 'DELETE', headers });
});

test('a key that is not the one of --key ends the move before anything is sent', async () => {
  const program = move('--yes', '--key', 'A'.repeat(43));
  await ended(program);
  expect(program.output()).toContain('which is not the one of --key');
});

test('svc vault move moves everything, checks it, and removes it here only with --remove', async () => {
  const said = await ended(move('--yes'));
  expect(statesOf(said).map(([, state, removed]) => [state, removed])).toEqual(KINDS.map(() => ['there', false]));
  expect(await hostedCall('/v1/client-certificates')).toContain('"host":"mtls.example.com"');
  expect(await hostedCall('/v1/connectors')).toContain('"state":"ready"');
  expect(await hostedCall('/v1/mcp-servers')).toContain('"set":true');
  const removed = await ended(move('--yes', '--remove'));
  expect(statesOf(removed).map(([, state, isRemoved]) => [state, isRemoved])).toEqual(KINDS.map(() => ['there', true]));
  expect((await local.api('GET', '/v1/secrets')).body).toMatchObject({ items: [] });
  expect((await local.api('GET', '/v1/mcp-servers')).body).toMatchObject({ items: [] });
  const types = (await local.events()).map(({ type }) => type);
  expect(types).toContain('control.vault.moved_out');
  expect(types).toContain('control.secret.deleted');
  expect(await hostedCall('/v1/audit-events')).toContain('control.vault.moved_in');
});

test('the value is in no output, and in no file of either side', () => {
  for (const program of everythingSaid) expect(program.output()).not.toContain(VALUE);
  expect(hosted.output()).not.toContain(VALUE);
  expect(local.output).not.toContain(VALUE);
  for (const folder of [local.home, hosted.home]) {
    const files = [...entriesUnder(folder)].map((entry) => contentOf(entry));
    expect(files.filter((file) => file?.bytes.includes(VALUE) === true).map((file) => file?.path)).toEqual([]);
  }
  expect(readFileSync(join(local.home, 'hosted', 'sign_in.json'), 'utf8')).toContain(hosted.url);
  expect(existsSync(join(local.home, 'sign_in.json'))).toBe(false);
});
