import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { typedProgram } from './own_program.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'svc-own-'));
  for (const folder of ['bin', 'linked', 'other']) mkdirSync(join(root, folder));
  for (const file of ['bin/svc', 'other/svc']) {
    writeFileSync(join(root, file), '#!/bin/sh\n');
    chmodSync(join(root, file), 0o755);
  }
  symlinkSync(join(root, 'bin', 'svc'), join(root, 'linked', 'svc'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

test.each([
  ['a link on PATH', ['linked', 'other'], true],
  ['another program of that name first on PATH', ['other', 'linked'], false],
  ['nothing on PATH', [], false],
])('with %s, the program is called by a name that leads to it', (_, folders, isLinked) => {
  const PATH = folders.map((folder) => join(root, folder)).join(':');
  expect(typedProgram({ root, env: { PATH } })).toBe(isLinked ? 'svc' : join(root, 'bin', 'svc'));
});
