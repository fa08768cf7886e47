import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ChosenSecret } from '../model/account_choice.ts';
import type { HostBinding } from '../model/host_binding.ts';
import { type Accounts, chooseAccounts, decideAccounts, groupByPattern, narrowToChosen } from './account_choice.ts';

function bound(path: string, change: Partial<HostBinding> = {}): HostBinding {
  return {
    id: `bnd_${path}`,
    owner: 'personal',
    host: 'api.example.test',
    credential: { owner: change.owner ?? 'personal', path },
    injection: { scheme: 'bearer' },
    emit: { mechanism: 'sentinel-swap', sentinel: `placeholder-of-${path}` },
    allowedHosts: [],
    body: 'buffer',
    ...change,
  };
}

const INJECT = { mechanism: 'inject' } as const;
const HOME = bound('user/home', { emit: INJECT });
const WORK = bound('user/work');
const OTHER = bound('user/other');
const by = (source: ChosenSecret['by'], ...paths: readonly string[]): ChosenSecret[] =>
  paths.map((path) => ({ path, by: source, from: null }));
const ids = (bindings: readonly HostBinding[] | undefined): string[] | undefined => bindings?.map(({ id }) => id);
const HOST = 'api.example.test';
const WILDCARD = '*.example.test';

/** What a session that starts with `atStart` uses at a host whose winning bindings are `now`. */
function narrow(
  secrets: readonly ChosenSecret[],
  { atStart, now = atStart, host = HOST }: Readonly<{ atStart: HostBinding[]; now?: HostBinding[]; host?: string }>,
): Accounts | null {
  return narrowToChosen(decideAccounts(secrets, atStart), host, now);
}

const NOTHING: Accounts = { bindings: [], byDefault: 'none', others: [], chosen: [] };

/** The ids of the bindings that may be used, and the one without a placeholder; null if none is right. */
function used(...args: Parameters<typeof narrow>): readonly [string[] | undefined, string] | null {
  const accounts = narrow(...args);
  if (accounts === null) return null;
  const { byDefault } = accounts;
  return [ids(accounts.bindings), typeof byDefault === 'string' ? byDefault : byDefault.id];
}

describe('a choice among the bindings of a host', () => {
  const ALL = [HOME, WORK, OTHER];
  const byFolder = by('folder', 'user/work');

  test('leaves all of them without a choice, and without one that is about the host', () => {
    const all = { bindings: [HOME, WORK], byDefault: 'as_ever', others: [], chosen: [] };
    expect(narrowToChosen(null, HOST, [HOME, WORK])).toEqual(all);
    expect(narrow(by('folder', 'user/unbound'), { atStart: [HOME, WORK] })).toEqual(all);
    const elsewhere = [{ ...HOME, host: 'b.test' }];
    expect(used(byFolder, { atStart: ALL, now: elsewhere, host: 'b.test' })).toEqual([['bnd_user/home'], 'as_ever']);
    expect(used(byFolder, { atStart: ALL, now: [], host: 'b.test' })).toEqual([[], 'as_ever']);
  });

  test('leaves those of the chosen secret, and names the others', () => {
    expect(used(byFolder, { atStart: ALL })).toEqual([['bnd_user/work'], 'bnd_user/work']);
    expect(ids(narrow(byFolder, { atStart: ALL })?.others)).toEqual(['bnd_user/home', 'bnd_user/other']);
  });

  test('uses the first of several, unless a request names another one', () => {
    const both = by('folder', 'user/work', 'user/home');
    expect(used(both, { atStart: ALL })).toEqual([['bnd_user/home', 'bnd_user/work'], 'bnd_user/work']);
  });

  test('takes an option before a profile, and a profile before a folder, for each host', () => {
    const wanted = [...by('folder', 'user/home'), ...by('profile', 'user/other'), ...by('option', 'user/work')];
    expect(used(wanted, { atStart: ALL })?.[0]).toEqual(['bnd_user/work']);
    expect(used(wanted, { atStart: [HOME, OTHER] })?.[0]).toEqual(['bnd_user/other']);
    expect(used(wanted, { atStart: [HOME] })?.[0]).toEqual(['bnd_user/home']);
  });

  test('takes the binding without a placeholder of a secret with several, and none if all have one', () => {
    const plain = bound('user/work', { id: 'bnd_plain', emit: INJECT });
    const second = bound('user/work', { id: 'bnd_second' });
    expect(used(byFolder, { atStart: [HOME, WORK, plain] })?.[1]).toBe('bnd_plain');
    expect(used(byFolder, { atStart: [HOME, WORK, second] })?.[1]).toBe('none');
    const both = by('folder', 'user/work', 'user/home');
    expect(used(both, { atStart: [HOME, WORK, second] })?.[1]).toBe('none');
  });

  test.each<[string, readonly ChosenSecret[], HostBinding[], HostBinding[]]>([
    ['its binding is removed', byFolder, [HOME, WORK], [HOME]],
    ['the only binding is removed', byFolder, [WORK], []],
    [
      'a wildcard wins, once the exact binding is removed',
      byFolder,
      [WORK, { ...HOME, host: WILDCARD }],
      [{ ...HOME, host: WILDCARD }],
    ],
    ['an exact binding of another account wins over its wildcard', byFolder, [{ ...WORK, host: WILDCARD }], [HOME]],
    [
      'the option is gone, and the folder names another one',
      [...by('option', 'user/home'), ...byFolder],
      [HOME, WORK],
      [WORK],
    ],
    ['the first of several is gone', by('folder', 'user/work', 'user/home'), [HOME, WORK], [HOME]],
    [
      'the enterprise has a secret of the same path',
      byFolder,
      [HOME, WORK],
      [bound('user/work', { owner: 'enterprise' }), bound('user/home', { owner: 'enterprise', emit: INJECT })],
    ],
  ])('never falls to another account: %s', (_what, secrets, atStart, now) => {
    expect(narrow(secrets, { atStart })).not.toBeNull();
    expect(narrow(secrets, { atStart, now })).toBeNull();
  });

  test('stays with the chosen account when another pattern wins that has it as well', () => {
    const atStart = [{ ...WORK, host: WILDCARD }];
    expect(used(byFolder, { atStart, now: [HOME, WORK] })).toEqual([['bnd_user/work'], 'bnd_user/work']);
  });

  test('is not about a host below its wildcard that has bindings of its own', () => {
    const below = { ...WORK, host: WILDCARD };
    const atStart = [below, { ...HOME, id: 'bnd_wide', host: WILDCARD }, HOME];
    expect(decideAccounts(byFolder, atStart).exceptions).toEqual([HOST]);
    expect(used(byFolder, { atStart, now: [HOME] })).toEqual([['bnd_user/home'], 'as_ever']);
    // Once these are gone, the host is one of the wildcard's.
    expect(used(byFolder, { atStart, now: atStart.slice(0, 2) })?.[0]).toEqual(['bnd_user/work']);
    expect(narrow(byFolder, { atStart, now: [] })).toBeNull();
    // A longer suffix decides before a shorter one, also if it is the one that is gone.
    const deep = [
      { ...WORK, host: '*.api.example.test' },
      { ...OTHER, host: WILDCARD },
    ];
    const wanted = by('folder', 'user/work', 'user/other');
    expect(narrow(wanted, { atStart: deep, now: deep.slice(1), host: 'a.api.example.test' })).toBeNull();
  });

  test('only ever narrows: it adds and changes no binding (property)', () => {
    const path = fc.constantFrom('user/a', 'user/b', 'user/c', 'user/d');
    const binding = fc.tuple(path, fc.boolean(), fc.nat()).map(([each, isPlain, id]) => {
      return bound(each, { id: `bnd_${id}`, ...(isPlain && { emit: INJECT }) });
    });
    const source = fc.constantFrom('option' as const, 'profile' as const, 'folder' as const);
    const secret = fc.record({ path, by: source, from: fc.constant(null) });
    const some = fc.array(binding, { minLength: 1 });
    fc.assert(
      fc.property(some, fc.array(binding), fc.array(secret), (atStart, later, secrets) => {
        expect(narrow(secrets, { atStart })).not.toBeNull();
        const decided = decideAccounts(secrets, atStart).decisions.flatMap(({ paths }) => paths);
        for (const now of [atStart, later]) {
          const narrowed = narrow(secrets, { atStart, now });
          const [first] = decided;
          const isGone = first !== undefined && now.every(({ credential }) => credential.path !== first);
          expect(narrowed === null).toBe(isGone);
          const { bindings, others, chosen, byDefault } = narrowed ?? NOTHING;
          const parts = [...bindings, ...others];
          expect(parts.every((each) => now.includes(each))).toBe(true);
          expect(parts).toHaveLength(isGone ? 0 : now.length);
          const isDecided = ({ credential }: HostBinding): boolean => decided.includes(credential.path);
          expect(first === undefined || bindings.every(isDecided)).toBe(true);
          expect(chosen.map(({ path: each }) => each).filter((each) => !decided.includes(each))).toEqual([]);
          expect(others.some(isDecided)).toBe(false);
          expect(['none', 'as_ever', ...bindings]).toContain(byDefault);
        }
      }),
    );
  });
});

describe('the choice of a new session', () => {
  test('refuses a secret that no binding uses, and suggests one', () => {
    expect(chooseAccounts(by('option', 'user/wrok'), [HOME, WORK])).toEqual({
      ok: false,
      error: 'no binding uses vault://user/wrok: did you mean "user/work"?',
    });
    expect(chooseAccounts([], [HOME])).toEqual({ ok: true, value: null });
  });

  test("does not bring back the enterprise's binding where a personal one replaces it", () => {
    const enterprise = bound('team/bot', { id: 'bnd_e', owner: 'enterprise' });
    for (const all of [
      [enterprise, HOME],
      [HOME, enterprise],
    ]) {
      expect(groupByPattern(all).get('api.example.test')).toEqual([HOME]);
      expect(chooseAccounts(by('option', 'team/bot'), all)).toMatchObject({ ok: false });
    }
    expect(chooseAccounts(by('option', 'team/bot'), [enterprise])).toMatchObject({ ok: true });
  });
});
