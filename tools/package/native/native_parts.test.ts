import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { checkNativePart, loadNativePart } from './load_native_part.ts';
import { lockedParts } from './locked_parts.ts';
import parts from './native_parts.json' with { type: 'json' };

const MODULES = fileURLToPath(new URL('../../../node_modules', import.meta.url));

test('the recorded parts are those of the lock file; renew them with node tools/package/native/record_native_parts.ts', () => {
  const recorded = Object.entries(parts).map(([name, { version, integrity }]) => ({ name, version, integrity }));
  expect(recorded).toEqual(lockedParts());
});

test('the recorded hashes are those of the parts that are installed', () => {
  const installed = Object.entries(parts).filter(([name]) => existsSync(join(MODULES, name)));
  expect(installed).not.toEqual([]);
  for (const [name, { sha256 }] of installed) {
    const file = readFileSync(join(MODULES, name, 'index.node'));
    expect([name, createHash('sha256').update(file).digest('hex')]).toEqual([name, sha256]);
  }
});

test('a part with one more byte is not loaded', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-native-part-'));
  const file = join(folder, 'index.node');
  try {
    writeFileSync(file, 'the part');
    const wanted = createHash('sha256').update('the part').digest('hex');
    checkNativePart(file, wanted);
    writeFileSync(file, 'the part.');
    expect(() => checkNativePart(file, wanted)).toThrow(`${file} is not the native part of the database`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a machine without a part is named', () => {
  expect(() => loadNativePart('plan9-x64')).toThrow('the database has no native part for plan9-x64');
});
