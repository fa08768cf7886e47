import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CLIENTS } from '../e2e/matrix/clients.ts';
import {
  awsCli,
  missingForContainers,
  PACKAGES,
  pythonWith,
  withRealPython,
  withSystemFolders,
} from './system_parts.mjs';

let folder = '';
const place = (name: string, script: string): void =>
  writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-parts-'));
  vi.stubEnv('PATH', [folder, process.env['PATH']].join(delimiter));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

describe('the programs of the tests', () => {
  it('are looked for where the system keeps its own, after the folders of the PATH', () => {
    expect(withSystemFolders('/a:/usr/sbin')).toBe('/a:/usr/sbin:/sbin');
    expect(withSystemFolders('')).toBe('/usr/sbin:/sbin');
  });

  it('are the first of the PATH', () => {
    place('python3', '[ "$2" = "import requests" ]');
    place('aws', 'exit 0');
    expect([pythonWith('requests'), awsCli()]).toEqual(['python3', 'aws']);
  });

  it('are never a placeholder that does not work', () => {
    for (const name of ['python3', 'aws']) place(name, 'echo "not in this version" >&2; exit 127');
    expect(pythonWith('requests')).not.toBe('python3');
    expect([null, '/usr/bin/aws']).toContain(awsCli());
  });

  it('are Python itself before the script of a version manager, if that finds one', () => {
    const path = process.env['PATH'];
    place('python3', `echo ${folder}/versions/bin`);
    expect(withRealPython(path)).toBe([`${folder}/versions/bin`, path].join(delimiter));
    place('python3', 'exit 127');
    expect(withRealPython(path)).toBe(path);
    writeFileSync(join(folder, 'python3'), '\x7fELF');
    expect(withRealPython(path)).toBe(path);
    expect(withRealPython(`${folder}/none`)).toBe(`${folder}/none`);
  });

  it('have the packages of every client of the matrix: a machine that had them before would hide that one is not installed', () => {
    const wanted = CLIENTS.flatMap(({ packages }) => packages?.split(' ') ?? []);
    expect(wanted.filter((name) => !PACKAGES.includes(name))).toEqual([]);
  });

  it('are missing when they are there and do not work, and stop the tests of containers if these need them', () => {
    for (const name of ['curl', 'go', 'jlink']) place(name, 'exit 1');
    const missing = missingForContainers().map(({ name }) => name);
    expect(missing).toEqual(expect.arrayContaining(['go', 'java with javac and jlink']));
    expect(missing.join()).not.toContain('curl');
  });
});
