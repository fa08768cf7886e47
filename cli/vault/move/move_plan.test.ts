import { describe, expect, test } from 'vitest';
import { ITEMS_SPEC } from '../../../e2e/runtimes/connector_samples.ts';
import { connectorRecord } from '../../../shared/wire/connectors/connectors.ts';
import { hostBindingRecord } from '../../../shared/wire/host_binding.ts';
import type { SecretRecord } from '../../../shared/wire/secrets.ts';
import { CONNECTOR } from '../../testing/connector_samples.ts';
import { planMove } from './move_plan.ts';
import { listValues, secretKey } from './moved_things.ts';
import { removeMoved } from './remove_moved.ts';
import type { VaultContents } from './vault_contents.ts';
import { CliError, EXIT } from '../../exit_codes.ts';

const ID = '01m7yjbz4dz98vffmftfxp52e5';
const TIME = '2026-01-01T12:00:00.000Z';
const NOTHING: VaultContents = {
  secrets: [],
  sources: [],
  bindings: [],
  tunnelHosts: [],
  certificates: [],
  connectors: [],
  servers: [],
};
const secret: SecretRecord = {
  id: 'sec_1',
  path: 'user/key',
  ref: 'vault://user/key',
  owner: 'personal',
  description: null,
  version: 1,
  created_at: TIME,
  updated_at: TIME,
};
const binding = hostBindingRecord.parse({
  id: `bnd_${ID}`,
  owner: 'personal',
  host: 'api.example.test',
  credential_ref: 'vault://user/key',
  scheme: 'bearer',
  emit_mechanism: 'inject',
  allowed_hosts: [],
  created_at: TIME,
  updated_at: TIME,
});
const borrowed = {
  ...secret,
  source: { kind: 'borrowed' as const },
  minted: null,
  last_minted_at: null,
  failure: null,
};
const HERE: VaultContents = { ...NOTHING, secrets: [secret], bindings: [binding] };
const states = (...plan: Parameters<typeof planMove>) => planMove(...plan).map(({ kind, state }) => [kind, state]);

describe('the plan of a move', () => {
  test('makes what is not there', () => {
    expect(states(HERE, NOTHING, new Map())).toEqual([
      ['secret', 'new'],
      ['binding', 'new'],
    ]);
  });

  test('takes what is the same as moved, so that a move can be repeated', () => {
    const compared = new Map([[secretKey('user/key'), 'same' as const]]);
    const there = { ...HERE, secrets: [{ ...secret, id: 'sec_2' }], bindings: [{ ...binding, id: 'bnd_2' }] };
    expect(states(HERE, there, compared)).toEqual([
      ['secret', 'there'],
      ['binding', 'there'],
    ]);
  });

  test('leaves a binding whose secret clashes: there it would send another secret to the host', () => {
    const compared = new Map([[secretKey('user/key'), 'different' as const]]);
    expect(states(HERE, { ...NOTHING, secrets: [secret] }, compared)).toEqual([
      ['secret', 'clash'],
      ['binding', 'stays'],
    ]);
  });

  test('takes a value that was not compared for another one', () => {
    expect(states(HERE, { ...NOTHING, secrets: [secret] }, new Map())[0]).toEqual(['secret', 'clash']);
  });

  test('leaves a binding without its secret, if there the path is a secret', () => {
    const here = { ...NOTHING, bindings: [binding] };
    expect(states(here, { ...NOTHING, secrets: [secret] }, new Map())).toEqual([['binding', 'stays']]);
    expect(states(here, NOTHING, new Map())).toEqual([['binding', 'new']]);
  });

  test('names another binding of the host as a clash', () => {
    const there = { ...NOTHING, bindings: [{ ...binding, id: 'bnd_2', effect: 'read' as const }] };
    expect(states(HERE, there, new Map())[1]).toEqual(['binding', 'clash']);
  });

  test('takes a client certificate with its secret, and leaves it where another one or none can be', () => {
    const certificate = {
      id: `crt_${ID}`,
      host: 'mtls.example.test',
      credential_ref: 'vault://user/key',
      effect: 'read' as const,
      created_at: TIME,
    };
    const here = { ...NOTHING, secrets: [secret], certificates: [certificate] };
    const of = (there: VaultContents, value: 'same' | 'different' = 'same') =>
      states(here, there, new Map([[secretKey('user/key'), value]]))[1];
    const there = { ...here, certificates: [{ ...certificate, id: 'crt_2', created_at: '2026-02-02T12:00:00.000Z' }] };
    expect(of(NOTHING)).toEqual(['client_certificate', 'new']);
    expect(of(there)).toEqual(['client_certificate', 'there']);
    expect(of(there, 'different')).toEqual(['client_certificate', 'stays']);
    const wider = { ...there, certificates: [{ ...certificate, effect: 'write' as const }] };
    expect(of(wider)).toEqual(['client_certificate', 'clash']);
    expect(of({ ...there, certificates: null })).toEqual(['client_certificate', 'stays']);
  });

  test('sends no value of a borrowed secret, which has none, and leaves a sign-in at a provider', () => {
    const here = { ...HERE, sources: [borrowed] };
    expect(listValues(here, here)).toEqual([]);
    expect(states(here, { ...NOTHING, secrets: [secret] }, new Map())[0]).toEqual(['secret', 'clash']);
    expect(states(here, { ...NOTHING, secrets: [secret], sources: [borrowed] }, new Map())[0]).toEqual([
      'secret',
      'there',
    ]);
    const credential = { ...CONNECTOR.credential, kind: 'oauth2', state: 'ready' };
    const connector = connectorRecord.parse({ ...CONNECTOR, credential, spec: ITEMS_SPEC });
    expect(states({ ...NOTHING, connectors: [connector] }, NOTHING, new Map())).toEqual([['connector', 'stays']]);
  });
});

/** A control plane that refuses to delete these. */
function fakeClient(refused: readonly string[] = []) {
  const calls: string[] = [];
  const callEmpty = async (method: string, path: string) => {
    if (refused.some((id) => path.endsWith(id))) throw new CliError(EXIT.failed, 'in use', [], 'secret_in_use');
    calls.push(`${method} ${path}`);
    return { status: 204, text: '' };
  };
  return { calls, origin: 'http://127.0.0.1:7420', send: never, stream: never, call: never, callEmpty };
}

const never = () => Promise.reject(new Error('not called'));

describe('the removal after a move', () => {
  const items = planMove(HERE, NOTHING, new Map());
  test('removes what uses a secret before the secret', async () => {
    const fake = fakeClient();
    await removeMoved(fake, items, HERE, HERE);
    expect(fake.calls).toEqual([`DELETE /v1/host-bindings/${binding.id}`, 'DELETE /v1/secrets/sec_1']);
  });

  test('keeps what was changed since it was compared, or is gone', async () => {
    const fake = fakeClient();
    const now = { ...NOTHING, secrets: [{ ...secret, version: 2 }] };
    const { removed, kept } = await removeMoved(fake, items, HERE, now);
    expect([fake.calls, removed, kept.map(({ why }) => why)]).toEqual([
      [],
      [],
      ['it was changed here meanwhile', 'it was changed here meanwhile'],
    ]);
  });

  test('names what could not be removed', async () => {
    const { removed, kept } = await removeMoved(fakeClient(['sec_1']), items, HERE, HERE);
    expect([removed.map(({ kind }) => kind), kept.map(({ why }) => why)]).toEqual([['binding'], ['in use']]);
  });
});
