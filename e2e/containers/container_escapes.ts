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
  'a plugin of another agent': 'the project is writable',
  'the settings of git': 'the project is writable',
  "the shell's settings of the folder": 'the project is writable',
  'hooks in a new .git': 'the project is writable',
  'hooks in a new folder': 'the project is writable',
  'settings of git by replacing them': 'the project is writable',
};

/** Every way out of `escapes.py`, tried in a container, is closed. */
export function expectNoWayOut({ stdout, stderr }: Finished): void {
  const tried = readAttempts(stdout, stderr);
  expect(Object.keys(tried).length).toBeGreaterThan(80);
  const others = Object.fromEntries(Object.entries(tried).filter(([name]) => !Object.hasOwn(OWN, name)));
  expect(namesOf(others, ({ out }) => out)).toEqual([]);
}
