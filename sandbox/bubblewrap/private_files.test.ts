import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { listPrivate } from './private_files.ts';

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-private-')));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Files and folders (`name/`), each with its mode. */
function make(entries: Readonly<Record<string, number>>): void {
  for (const [name, mode] of Object.entries(entries)) {
    const path = join(folder, name);
    if (name.endsWith('/')) mkdirSync(path, { recursive: true });
    else writeFileSync(path, 'x');
    chmodSync(path, mode);
  }
}

const list = (programs: readonly string[] = [], asked: readonly string[] = [], levels = 9) =>
  listPrivate(
    { path: folder, levels },
    { programs: programs.map((name) => join(folder, name)), asked: asked.map((name) => join(folder, name)) },
  )
    .map((path) => relative(folder, path))
    .toSorted();

it('is what others can neither read nor enter', () => {
  make({ 'svc/': 0o755, 'svc/control.env': 0o600, 'svc/public': 0o644, 'keys/': 0o700, 'keys/one': 0o644 });
  make({ 'group.conf': 0o640, 'listed/': 0o751, 'listed/secret': 0o600, hosts: 0o644 });
  symlinkSync('/etc/passwd', join(folder, 'link'));
  expect(list()).toEqual(['group.conf', 'keys', 'listed/secret', 'svc/control.env']);
});

it('is not a program that the sandbox needs, but what is beside it', () => {
  make({ 'tool/': 0o700, 'tool/bin/': 0o700, 'tool/bin/tool': 0o750, 'tool/bin/notes': 0o600, 'tool/keys/': 0o700 });
  expect(list()).toEqual(['tool']);
  expect(list(['tool/bin'])).toEqual(['tool/bin/notes', 'tool/keys']);
});

it('is not what a person named', () => {
  make({ 'app/': 0o700, 'app/lib/': 0o700, 'app/lib/inner': 0o600, 'app/env': 0o600 });
  expect(list([], ['app/lib'])).toEqual(['app/env']);
  expect(list([], ['app'])).toEqual([]);
});

it('is looked for in so many levels', () => {
  make({ 'a/': 0o755, 'a/one': 0o600, 'a/b/': 0o755, 'a/b/two': 0o600 });
  expect(list([], [], 2)).toEqual(['a/one']);
});
