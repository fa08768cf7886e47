import { describe, expect, test } from 'vitest';
import {
  admitShared,
  admitSharedConnectors,
  admitSharedServers,
  bindingShareProblem,
  connectorShareProblem,
  mayEndShare,
  mayManageGroups,
  serverShareProblem,
  standingOf,
} from './share_rules.ts';

const BINDING = {
  owner: 'personal',
  host: 'api.example.com',
  credential_ref: 'vault://user/demo',
  allowed_hosts: [],
  effect: 'read',
};

describe('a binding is shared', () => {
  test('if its owner has fixed hosts, scheme and effect', () => {
    expect(bindingShareProblem(BINDING)).toBeNull();
    expect(bindingShareProblem({ ...BINDING, host: '*.example.com', allowed_hosts: ['a.example.com'] })).toBeNull();
  });

  test.each([
    ['effect', { effect: undefined }],
    ['host', { host: '*.example.com' }],
    ['owner', { owner: 'enterprise' }],
    ['credential_ref', { credential_ref: 'vault://connectors/login/claude' }],
  ])('not otherwise: %s', (field, change) => {
    expect(bindingShareProblem({ ...BINDING, ...change })).toMatchObject({ field });
  });
});

describe('a connector is shared', () => {
  const connector = { owner: 'personal', fqn: 'acme/demo', isActive: true };

  test('if it is one’s own and has a credential', () => {
    expect(connectorShareProblem(connector)).toBeNull();
  });

  test.each([
    ['owner', { owner: 'enterprise' }],
    ['fqn', { fqn: 'login/claude' }],
    ['credential', { isActive: false }],
  ])('not otherwise: %s', (field, change) => {
    expect(connectorShareProblem({ ...connector, ...change })).toMatchObject({ field });
  });
});

describe('an MCP server is shared', () => {
  const server = { owner: 'personal', mode: 'remote', credentials: ['TOKEN'] };

  test('if it is a remote one, or a program without credentials', () => {
    expect(serverShareProblem(server)).toBeNull();
    expect(serverShareProblem({ ...server, mode: 'local', credentials: [] })).toBeNull();
  });

  test.each([
    ['owner', { owner: 'enterprise' }],
    ['mode', { mode: 'local' }],
  ])('not otherwise: %s', (field, change) => {
    expect(serverShareProblem({ ...server, ...change })).toMatchObject({ field });
  });
});

describe('what is shared is in force', () => {
  const sharer = { role: 'member' as const, suspendedAt: null };
  const held = { sharer, problem: null, revision: '2', acceptedRevision: null };

  test('at once if an admin shares it', () => {
    expect(standingOf({ ...held, sharer: { ...sharer, role: 'admin' } })).toBe('in_force');
  });

  test('of a colleague once the receiver accepted exactly this revision', () => {
    expect(standingOf(held)).toBe('to_accept');
    expect(standingOf({ ...held, acceptedRevision: '2' })).toBe('in_force');
    expect(standingOf({ ...held, acceptedRevision: '1' })).toBe('to_accept');
  });

  test('never while whoever shares it is suspended', () => {
    const suspended = { role: 'owner' as const, suspendedAt: '2026' };
    expect(standingOf({ ...held, sharer: suspended, acceptedRevision: '2' })).toBe('paused');
  });

  test.each([{ effect: undefined }, { host: '*.example.com' }, { credential_ref: 'vault://connectors/login/claude' }])(
    'never while the binding is one that cannot be shared, whoever shares it: %o',
    (change) => {
      const problem = bindingShareProblem({ ...BINDING, ...change });
      const admin = { ...sharer, role: 'admin' as const };
      expect(standingOf({ ...held, problem, acceptedRevision: '2' })).toBe('paused');
      expect(standingOf({ ...held, problem, sharer: admin })).toBe('paused');
    },
  );
});

const slot = (id: string, host: string, sentinel = '') => ({ id, host, sentinel });

const admitted = (own: Parameters<typeof admitShared>[0], shared: ReturnType<typeof slot>[]) =>
  admitShared(own, shared).map(({ id }) => id);

describe('beside the receiver’s own and the enterprise’s bindings', () => {
  test('a personal binding replaces what is shared for its pattern', () => {
    const own = [{ ...slot('own', 'a.test', 'sk-1'), owner: 'personal' }];
    expect(admitted(own, [slot('x', 'a.test'), slot('y', 'b.test')])).toEqual(['y']);
  });

  test('the enterprise’s wins where a request could not tell them apart', () => {
    const own = [{ ...slot('ent', 'a.test'), owner: 'enterprise' }];
    expect(admitted(own, [slot('x', 'a.test'), slot('y', 'a.test', 'sk-1')])).toEqual(['y']);
  });

  test('of two that are shared the first wins, and one that is shared twice counts once', () => {
    expect(admitted([], [slot('x', 'a.test'), slot('y', 'a.test'), slot('x', 'a.test')])).toEqual(['x']);
  });
});

const at = (fqn: string, ...hosts: string[]) => ({ fqn, hosts, isActive: true });

const usedConnectors = (own: Parameters<typeof admitSharedConnectors>[0], shared: ReturnType<typeof at>[]) =>
  admitSharedConnectors(own, shared).map(({ fqn }) => fqn);

describe('beside the receiver’s own and the enterprise’s connectors', () => {
  test('one of the same name comes first, also if it is not active', () => {
    expect(
      usedConnectors([{ ...at('a/x', 'own.test'), isActive: false }], [at('a/x', 'a.test'), at('a/y', 'b.test')]),
    ).toEqual(['a/y']);
  });

  test('an active one of the same host comes first', () => {
    expect(usedConnectors([at('a/own', 'a.test')], [at('a/x', 'b.test', 'a.test'), at('a/y', 'c.test')])).toEqual([
      'a/y',
    ]);
    expect(usedConnectors([{ ...at('a/own', 'a.test'), isActive: false }], [at('a/x', 'a.test')])).toEqual(['a/x']);
  });

  test('of two that are shared the first is used', () => {
    expect(usedConnectors([], [at('a/x', 'a.test'), at('a/y', 'a.test'), at('a/x', 'b.test')])).toEqual(['a/x']);
  });
});

test('of MCP servers of one name, one’s own is used, then the enterprise’s, then the one that was shared first', () => {
  const shared = [{ name: 'mine' }, { name: 'theirs' }, { name: 'theirs' }];
  expect(admitSharedServers(['mine'], shared)).toEqual([{ name: 'theirs' }]);
});

test('admins change groups; whoever shared something and admins end it', () => {
  const member = { userId: 'usr_1', role: 'member' as const };
  expect(mayManageGroups(member)).toBe(false);
  expect(mayManageGroups({ role: 'admin' })).toBe(true);
  expect(mayEndShare(member, { ownerId: 'usr_1' })).toBe(true);
  expect(mayEndShare(member, { ownerId: 'usr_2' })).toBe(false);
  expect(mayEndShare({ ...member, role: 'admin' }, { ownerId: 'usr_2' })).toBe(true);
});
