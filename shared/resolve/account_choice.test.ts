import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AccountChoice, ChosenSecret } from '../model/account_choice.ts';
import type { HostBinding } from '../model/host_binding.ts';
import { chooseAccounts, groupByPattern, narrowToChosen } from './account_choice.ts';

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
const choice = (...secrets: readonly ChosenSecret[]): AccountChoice => ({ secrets, hosts: [] });
const ids = (bindings: readonly HostBinding[] | undefined): string[] | undefined => bindings?.map(({ id }) => id);

describe('a choice among the bindings of a host', () => {
  test('leaves all of them without a choice, and without one that is about the host', () => {
    for (const each of [null, choice(...by('folder', 'user/unbound'))]) {
      const all = { bindings: [HOME, WORK], byDefault: null, others: [], chosen: [] };
      expect(narrowToChosen(each, [HOME, WORK])).toEqual(all);
    }
  });

  test('leaves those of the chosen secret, and names the others', () => {
    const narrowed = narrowToChosen(choice(...by('folder', 'user/work')), [HOME, WORK, OTHER]);
    expect([ids(narrowed?.bindings), narrowed?.byDefault?.id]).toEqual([['bnd_user/work'], 'bnd_user/work']);
    expect(ids(narrowed?.others)).toEqual(['bnd_user/home', 'bnd_user/other']);
  });

  test('uses the first of several, unless a request names another one', () => {
    const narrowed = narrowToChosen(choice(...by('folder', 'user/work', 'user/home')), [HOME, WORK, OTHER]);
    expect([ids(narrowed?.bindings), narrowed?.byDefault?.id]).toEqual([
      ['bnd_user/home', 'bnd_user/work'],
      'bnd_user/work',
    ]);
  });

  test('takes an option before a profile, and a profile before a folder, for each host', () => {
    const wanted = [...by('folder', 'user/home'), ...by('profile', 'user/other'), ...by('option', 'user/work')];
    expect(ids(narrowToChosen(choice(...wanted), [HOME, WORK, OTHER])?.bindings)).toEqual(['bnd_user/work']);
    expect(ids(narrowToChosen(choice(...wanted), [HOME, OTHER])?.bindings)).toEqual(['bnd_user/other']);
    expect(ids(narrowToChosen(choice(...wanted), [HOME])?.bindings)).toEqual(['bnd_user/home']);
  });

  test('takes the binding without a placeholder of a secret with several, and none if all have one', () => {
    const plain = bound('user/work', { id: 'bnd_plain', emit: INJECT });
    const second = bound('user/work', { id: 'bnd_second' });
    const byFolder = choice(...by('folder', 'user/work'));
    expect(narrowToChosen(byFolder, [HOME, WORK, plain])?.byDefault?.id).toBe('bnd_plain');
    expect(narrowToChosen(byFolder, [HOME, WORK, second])?.byDefault).toBeNull();
  });

  test('leaves none if the chosen binding is gone: no other account takes its place', () => {
    const before = chooseAccounts(by('folder', 'user/work'), [HOME, WORK]);
    expect(before).toEqual({ ok: true, value: { secrets: by('folder', 'user/work'), hosts: ['api.example.test'] } });
    expect(before.ok && narrowToChosen(before.value, [HOME])).toBeNull();
    expect(before.ok && ids(narrowToChosen(before.value, [{ ...HOME, host: 'b.test' }])?.bindings)).toHaveLength(1);
  });

  test('only ever narrows: it adds and changes no binding (property)', () => {
    const path = fc.constantFrom('user/a', 'user/b', 'user/c', 'user/d');
    const binding = fc.tuple(path, fc.boolean(), fc.nat()).map(([each, isPlain, id]) => {
      return bound(each, { id: `bnd_${id}`, ...(isPlain && { emit: INJECT }) });
    });
    const source = fc.constantFrom('option' as const, 'profile' as const, 'folder' as const);
    const secret = fc.record({ path, by: source, from: fc.constant(null) });
    fc.assert(
      fc.property(fc.array(binding, { minLength: 1 }), fc.array(secret), (bindings, secrets) => {
        const narrowed = narrowToChosen(choice(...secrets), bindings);
        if (narrowed === null) throw new Error('a choice without hosts always leaves a binding');
        const parts = [...narrowed.bindings, ...narrowed.others];
        expect(parts.every((each) => bindings.includes(each))).toBe(true);
        expect(parts).toHaveLength(bindings.length);
        expect(narrowed.bindings).not.toEqual([]);
        const chosen = narrowed.chosen.map((each) => each.path);
        expect(narrowed.others.some(({ credential }) => chosen.includes(credential.path))).toBe(false);
        expect([null, ...narrowed.bindings]).toContain(narrowed.byDefault);
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
