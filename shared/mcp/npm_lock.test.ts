import { describe, expect, test } from 'vitest';
import { readNpmLock } from './npm_lock.ts';

const HASH = `sha512-${'A'.repeat(86)}==`;
const WANTED = { name: '@acme/files', version: '1.2.3', isExact: true };
const PLATFORM = { os: 'linux', cpu: 'x64' };
const OWN = { version: '1.2.3', resolved: 'https://r.example/files.tgz', integrity: HASH };
const DEPENDENCY = { version: '4.0.0', resolved: 'https://r.example/a.tgz', integrity: HASH };

type Packages = Readonly<Record<string, unknown>>;
const read = (packages: Packages, wanted = WANTED) =>
  readNpmLock(
    JSON.stringify({ lockfileVersion: 3, packages: { '': {}, 'node_modules/@acme/files': OWN, ...packages } }),
    wanted,
    PLATFORM,
  );

describe('a lock file', () => {
  test('says the release, where it is fetched, and which packages have install scripts', () => {
    expect(read({ 'node_modules/a': { ...DEPENDENCY, hasInstallScript: true } })).toEqual({
      ok: true,
      value: {
        release: '1.2.3',
        tarballs: ['https://r.example/files.tgz', 'https://r.example/a.tgz'],
        withScripts: ['a@4.0.0'],
      },
    });
  });

  test('may have a package under another name, and one that comes inside another', () => {
    const packages = {
      'node_modules/b': { ...DEPENDENCY, name: 'a' },
      'node_modules/b/node_modules/@c/d': { version: '1.0.0', inBundle: true },
      'node_modules/b/node_modules/@c/d/node_modules/e': { version: '1.0.0', inBundle: true },
    };
    expect(read(packages)).toMatchObject({ ok: true });
  });

  test('may have dependencies by version, range, tag and another name, and a lock file of its publisher', () => {
    const dependencies = { b: '1.0.0', c: '^1.0.0 || >=2 <3', d: 'latest', e: '*', f: '', g: 'npm:@a/b@^1.0.0' };
    const packages = {
      'node_modules/a': { ...DEPENDENCY, dependencies, hasShrinkwrap: true },
      'node_modules/a/node_modules/b': DEPENDENCY,
    };
    expect(read(packages)).toMatchObject({ ok: true });
  });

  test.each([
    ['another system', { os: ['darwin'] }],
    ['another processor', { cpu: ['arm64'] }],
    ['every system but this', { os: ['!linux'] }],
  ])('counts no package for %s', (_, limits) => {
    const found = read({ 'node_modules/a': { ...DEPENDENCY, hasInstallScript: true, ...limits } });
    expect(found).toMatchObject({ ok: true, value: { tarballs: [OWN.resolved], withScripts: [] } });
  });

  test.each([{ os: ['linux', 'darwin'] }, { os: ['!win32'] }, { cpu: ['any'] }, { os: [] }])(
    'counts a package for %j',
    (limits) => {
      const found = read({ 'node_modules/a': { ...DEPENDENCY, ...limits } });
      expect(found).toMatchObject({ ok: true, value: { tarballs: [OWN.resolved, DEPENDENCY.resolved] } });
    },
  );
});

describe('a lock file is refused', () => {
  test.each<readonly [string, Packages, string]>([
    ['another release', { 'node_modules/@acme/files': { ...OWN, version: '1.2.4' } }, 'not the wanted release'],
    ['another package in its place', { 'node_modules/@acme/files': { ...OWN, name: 'evil' } }, 'another package'],
    ['a directory of this machine', { 'node_modules/a': { resolved: '../../x', link: true } }, 'directory'],
    ['a repository', { 'node_modules/a': { ...DEPENDENCY, resolved: 'git+ssh://git@h/r.git#0' } }, 'registry'],
    ['a file', { 'node_modules/a': { ...DEPENDENCY, resolved: 'file:../a.tgz' } }, 'registry'],
    ['a credential in a URL', { 'node_modules/a': { ...DEPENDENCY, resolved: 'https://u:p@h/a.tgz' } }, 'registry'],
    ['no place to fetch it', { 'node_modules/a': { version: '4.0.0', integrity: HASH } }, 'registry'],
    ...['dependencies', 'optionalDependencies', 'peerDependencies'].map((kind): [string, Packages, string] => [
      `a URL among its ${kind}`,
      { 'node_modules/a': { ...DEPENDENCY, [kind]: { b: 'http://127.0.0.1:8080/x' } } },
      'dependency that is not from a registry',
    ]),
    ...['https://h/b.tgz', 'git+ssh://git@h/r.git', 'user/repository', 'file:../b', 'npm:http://h/b.tgz', '/b'].map(
      (spec): [string, Packages, string] => [
        `the dependency ${spec}`,
        { 'node_modules/@acme/files': { ...OWN, dependencies: { b: spec } } },
        'dependency that is not from a registry',
      ],
    ),
    [
      'a lock file of its publisher that leads elsewhere',
      {
        'node_modules/a': { ...DEPENDENCY, hasShrinkwrap: true },
        'node_modules/a/node_modules/b': { ...DEPENDENCY, resolved: 'http://169.254.169.254/b.tgz' },
      },
      'from elsewhere',
    ],
    ['no hash', { 'node_modules/a': { ...DEPENDENCY, integrity: undefined } }, 'hash'],
    ['a SHA-1', { 'node_modules/a': { ...DEPENDENCY, integrity: `sha1-${'A'.repeat(27)}=` } }, 'hash'],
    ['a range', { 'node_modules/a': { ...DEPENDENCY, version: '^4.0.0' } }, 'exact version'],
    ['a place outside', { 'node_modules/../../a': DEPENDENCY }, 'not inside'],
    ['a place beside', { 'packages/a': DEPENDENCY }, 'not inside'],
    ['an absolute place', { '/etc/a': DEPENDENCY }, 'not inside'],
    ['a bundled package without its package', { 'node_modules/a': { version: '1.0.0', inBundle: true } }, 'inside'],
    [
      'a bundled package below one without a hash',
      {
        'node_modules/a': { version: '1.0.0', inBundle: true },
        'node_modules/a/node_modules/b': { version: '1.0.0', inBundle: true },
      },
      'inside',
    ],
  ])('for %s', (_, packages, said) => {
    expect(read(packages)).toMatchObject({ ok: false, error: expect.stringContaining(said) });
  });

  test.each(['', '{', '[]', '{"lockfileVersion":1,"packages":{}}', '{"lockfileVersion":3,"packages":{}}'])(
    'if it is %j',
    (text) => {
      expect(readNpmLock(text, WANTED, PLATFORM)).toMatchObject({ ok: false });
    },
  );

  test('if it has too many packages', () => {
    const names = Array.from({ length: 5_001 }, (_, index) => [`node_modules/a${index}`, DEPENDENCY] as const);
    expect(read(Object.fromEntries(names))).toMatchObject({ ok: false });
  });
});

test('a range takes the release that npm chose', () => {
  expect(read({}, { ...WANTED, version: '^1.0.0', isExact: false })).toMatchObject({ value: { release: '1.2.3' } });
});
