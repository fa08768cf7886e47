import { describe, expect, test } from 'vitest';
import { lockOfReport, readPythonLock, requirementsOf } from './python_lock.ts';

const SPEC = { kind: 'pypi', name: 'acme', version: '1.0', isExact: true, extras: '', program: 'acme' } as const;
const PYTHON = { executable: '/usr/bin/python3.11', version: '3.11', platform: 'linux-x86_64', prefix: '/usr' };
const SHA = 'a'.repeat(64);
const OWN = {
  download_info: { url: 'https://f.example/acme-1.0-py3-none-any.whl', archive_info: { hash: `sha256=${SHA}` } },
  is_direct: false,
  metadata: { name: 'Acme', version: '1.0' },
};
const lock = (install: readonly object[]) => lockOfReport(JSON.stringify({ version: '1', install }), SPEC, PYTHON);
const other = (more: object, download: object = {}) => ({
  ...OWN,
  metadata: { name: 'b', version: '2.0' },
  ...more,
  download_info: { ...OWN.download_info, ...download },
});

describe('the lock of a Python package', () => {
  test('has each wheel with its hash, and the Python that it is for', () => {
    const made = lock([other({}), OWN]);
    if (!made.ok) throw new Error(made.error);
    const read = readPythonLock(made.value, SPEC);
    if (!read.ok) throw new Error(read.error);
    expect(read.value).toMatchObject({ release: '1.0', python: PYTHON });
    expect(requirementsOf(read.value)).toBe(`acme==1.0 --hash=sha256:${SHA}\nb==2.0 --hash=sha256:${SHA}\n`);
  });

  test.each<readonly [string, readonly object[], string]>([
    ['a package by a URL of its publisher', [OWN, other({ is_direct: true })], 'fetches from elsewhere'],
    ['a source archive', [OWN, other({}, { url: 'https://f.example/b-2.0.tar.gz' })], 'has no wheel'],
    ['a directory', [OWN, other({}, { url: 'file:///home/b', archive_info: undefined })], 'has no wheel'],
    ['a wheel without a hash', [OWN, other({}, { archive_info: {} })], 'SHA-256'],
    ['a weak hash', [OWN, other({}, { archive_info: { hashes: { md5: 'a'.repeat(32) } } })], 'SHA-256'],
    ['a version that is an option', [OWN, other({ metadata: { name: 'b', version: '1 --index-url x' } })], 'version'],
    ['a name with a line break', [OWN, other({ metadata: { name: 'b\n--pre', version: '1' } })], 'name'],
    ['another package', [other({})], 'is not in its own lock file'],
    ['a package twice', [OWN, OWN], 'twice'],
  ])('is refused with %s', (_, install, said) => {
    expect(lock(install)).toMatchObject({ ok: false, error: expect.stringContaining(said) });
  });

  test.each(['', 'null', '{}', '{"version":"1","install":[]}', '{"version":"2","install":[]}'])(
    'is refused for the report %j',
    (report) => expect(lockOfReport(report, SPEC, PYTHON).ok).toBe(false),
  );

  test('that was changed is refused', () => {
    const made = lock([OWN]);
    if (!made.ok) throw new Error(made.error);
    for (const [from, to] of [
      ['"executable":"/usr', '"executable":"usr'],
      [SHA, SHA.slice(1)],
      ['"version":1', '"version":2'],
      ['"acme"', '"b"'],
    ] as const) {
      expect(made.value).toContain(from);
      expect(readPythonLock(made.value.replace(from, to), SPEC).ok).toBe(false);
    }
  });
});
