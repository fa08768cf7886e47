import { describe, expect, test } from 'vitest';
import type { RemovalUse } from '../wire/removals.ts';
import { describeRemoval, type RemovalFacts } from './removal.ts';

const BINDING: RemovalUse = { kind: 'binding', id: 'bnd_1', name: 'api.example.test' };
const SERVER: RemovalUse = { kind: 'mcp_server', id: 'mcp_1', name: 'files' };
const common = { owner: 'personal', lastUsedAt: null } as const;

const secret = { ...common, kind: 'secret', name: 'user/key', users: [], isMinted: false } as const;
const binding = {
  ...common,
  kind: 'binding',
  id: 'bnd_1',
  name: 'api.example.test',
  reference: 'vault://user/key',
  placeholderIn: null,
  bindings: [],
  sharedWith: [],
  connectors: [],
} as const;
const connector = {
  ...common,
  kind: 'connector',
  id: 'con_1',
  name: 'acme/items',
  isActive: true,
  hosts: ['api.example.test'],
  operations: [
    { name: 'list-items', needsApproval: false },
    { name: 'delete-item', needsApproval: true },
  ],
  sharedReference: null,
  hasCredential: true,
  users: [],
  bindings: [],
  sharedWith: [],
} as const;
const server = {
  ...common,
  kind: 'mcp_server',
  name: 'files',
  credentials: ['TOKEN'],
  isSignedIn: false,
  isEnabled: true,
  sharedWith: [],
} as const;

const codes = (facts: RemovalFacts) => describeRemoval(facts).effects.map(({ code }) => code);
const usesIn = (facts: RemovalFacts, code: string) =>
  describeRemoval(facts).effects.find((effect) => effect.code === code)?.uses;

describe('a secret', () => {
  test('may be deleted while nothing refers to it', () => {
    expect(describeRemoval(secret)).toMatchObject({ allowed: true, name: 'user/key' });
    expect(codes(secret)).toEqual(['unused', 'deleted_with_it']);
  });

  test('may not while something does; requests and servers are told apart', () => {
    const used = { ...secret, users: [BINDING, SERVER] };
    expect(describeRemoval(used).allowed).toBe(false);
    expect(usesIn(used, 'requests_refused')).toEqual([BINDING]);
    expect(usesIn(used, 'servers_stopped')).toEqual([SERVER]);
    expect(codes(used)).not.toContain('unused');
  });

  test('of the enterprise concerns everyone in it', () => {
    expect(codes({ ...secret, owner: 'enterprise' }).at(-1)).toBe('for_everyone');
  });
});

const other = (host: string, id = 'bnd_2') => ({ id, host, owner: 'enterprise' as const });

describe('a binding', () => {
  test('without another leaves its host without a credential', () => {
    expect(codes(binding)).toEqual(['credential_lost', 'requests_refused', 'kept']);
  });

  test.each([
    ['api.example.test', true],
    ['*.example.test', true],
    ['*.api.example.test', false],
    ['example.test', false],
    ['apiexample.test', false],
  ])('is followed by one for %s: %s', (host, isNext) => {
    expect(codes({ ...binding, bindings: [other(host)] }).includes('next_credential')).toBe(isNext);
  });

  test('is not followed by itself', () => {
    expect(codes({ ...binding, bindings: [other(binding.name, binding.id)] })).not.toContain('next_credential');
  });

  test('that is shared names who loses it too', () => {
    const { effects } = describeRemoval({ ...binding, sharedWith: ['Pat', 'Backend'] });
    expect(effects.map(({ names }) => names)).toContainEqual(['Pat', 'Backend']);
  });

  test.each([connector, server])('so does a $kind', (facts) => {
    const { effects } = describeRemoval({ ...facts, sharedWith: ['Pat'] });
    expect(effects.map(({ names }) => names)).toContainEqual(['Pat']);
  });

  test('with a placeholder says that the service gets the placeholder', () => {
    const { effects } = describeRemoval({ ...binding, placeholderIn: 'DEMO_TOKEN' });
    expect(effects.map(({ text }) => text).join(' ')).toContain('The placeholder in DEMO_TOKEN');
  });
});

describe('a connector', () => {
  test('whose hosts are bound ends the approvals of its operations, and names them', () => {
    const bound = { ...connector, bindings: [{ id: 'bnd_2', host: '*.example.test', owner: 'personal' as const }] };
    const { effects } = describeRemoval(bound);
    expect(effects.find(({ code }) => code === 'approvals_end')?.names).toEqual(['delete-item']);
    expect(codes(bound)).toContain('next_credential');
  });

  test('whose hosts are not bound ends none, because nothing gets a credential', () => {
    expect(codes(connector)).toEqual(['credential_lost', 'tools_lost', 'deleted_with_it']);
  });

  test('names the bindings that send its credential as broken, not as the next ones', () => {
    const sent = { id: 'bnd_1', host: 'api.example.test', owner: 'personal' as const };
    const facts = { ...connector, users: [BINDING], bindings: [sent] };
    expect(usesIn(facts, 'requests_refused')).toEqual([BINDING]);
    expect(codes(facts)).not.toContain('next_credential');
    expect(codes(facts)).not.toContain('approvals_end');
  });

  test('that is not in force changes no request', () => {
    expect(codes({ ...connector, isActive: false, hasCredential: false })).toEqual(['unused', 'tools_lost']);
  });

  test('leaves a secret that serves it in the vault', () => {
    expect(codes({ ...connector, sharedReference: 'vault://user/key' })).toContain('kept');
  });
});

describe('an MCP server', () => {
  test('takes its credentials and its sign-in along', () => {
    const { effects } = describeRemoval({ ...server, isSignedIn: true });
    expect(effects.find(({ code }) => code === 'deleted_with_it')?.names).toEqual(['TOKEN', 'the sign-in to it']);
  });

  test('that is disabled stops nothing', () => {
    expect(codes({ ...server, isEnabled: false, credentials: [] })).toEqual(['unused', 'tools_lost', 'unused']);
  });
});
