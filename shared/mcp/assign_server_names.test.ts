import { expect, test } from 'vitest';
import { localServer } from './testing/servers.ts';
import { assignServerNames } from './assign_server_names.ts';

const server = (id: string, name: string, owner: 'personal' | 'enterprise' = 'personal') =>
  localServer({ id, name, owner });

test("a personal server keeps its name; an enterprise's with the same name gets a number", () => {
  const names = assignServerNames([server('e', 'git', 'enterprise'), server('p', 'git'), server('q', 'git-2')]);
  expect(Object.fromEntries(names)).toEqual({ e: 'git-3', p: 'git', q: 'git-2' });
});

test('names are unique and never too long', () => {
  const long = 'x'.repeat(48);
  const all = (['personal', 'enterprise'] as const).flatMap((owner) =>
    [long, `${'x'.repeat(46)}-2`, 'a', 'a-2'].map((name) => server(`${owner}-${name}`, name, owner)),
  );
  const names = [...assignServerNames(all).values()];
  expect(new Set(names).size).toBe(all.length);
  expect(names.every((name) => /^[a-z0-9][a-z0-9-]{0,47}$/.test(name))).toBe(true);
});
