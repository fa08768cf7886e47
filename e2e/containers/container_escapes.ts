import { existsSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect } from 'vitest';
import { namesOf, readAttempts } from '../sandbox/attempts.ts';
import type { Finished } from '../support/program.ts';

/** Open in a container too, and why that is no way out of it. */
const OWN: Readonly<Record<string, string>> = {
  ptrace: 'of a process of its own: no other is in its process namespace',
  'the memory of a process': 'of a process of its own',
  'typing at a terminal': "of its own: the person's terminal is outside",
  'typing with bits that the kernel drops': "of its own: the person's terminal is outside",
  // What it writes to the project is a person's to review: SECURITY.md, docs/guides/containers.md.
  'a git hook': 'the project is writable',
  'a task of an editor': 'the project is writable',
  'a task of another editor': 'the project is writable',
  'a git hook of a repository below': 'the project is writable',
  'a hook of an agent': 'the project is writable',
  'moving a repository away': 'the project is writable',
  'a plugin of another agent': 'the project is writable',
  'the settings of git': 'the project is writable',
  "the shell's settings of the folder": 'the project is writable',
  'hooks in a new .git': 'the project is writable',
  'hooks in a new folder': 'the project is writable',
  'settings of git by replacing them': 'the project is writable',
};

/** Open where a container has the engine's own network, as with `--egress=open`. */
export const WITH_A_NETWORK: readonly string[] = [
  'a route to a public address',
  'a route to a name server',
  'a route to the metadata address',
  'an interface with a route',
];

/** Every way out of `escapes.py`, tried in a container, is closed, but for those that it has by its network. */
export function expectNoWayOut({ stdout, stderr }: Finished, byNetwork: readonly string[] = []): void {
  const tried = readAttempts(stdout, stderr);
  expect(Object.keys(tried).length).toBeGreaterThan(80);
  const others = Object.fromEntries(
    Object.entries(tried).filter(([name]) => !Object.hasOwn(OWN, name) && !byNetwork.includes(name)),
  );
  expect(namesOf(others, ({ out }) => out)).toEqual([]);
}

/** The machine's own Python in a container without one, which has the machine's /usr below that folder. */
export function pythonBelow(folder: string): readonly string[] {
  const loader = ['/lib64/ld-linux-x86-64.so.2', '/lib/ld-linux-aarch64.so.1'].find((path) => existsSync(path)) ?? '';
  const there = `${folder}${realpathSync(loader)}`;
  const libraries = ['--library-path', dirname(there)];
  return ['env', `PYTHONHOME=${folder}/usr`, there, ...libraries, `${folder}/usr/bin/python3`];
}
