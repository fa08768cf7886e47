import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { writeInstallScript } from '../../tools/package/install_script.ts';
import { CHECKSUMS, publicKeyOf, signChecksums, SIGNATURE } from '../../tools/package/sign_release.ts';

// The script runs against small releases that are signed by keys of this test. Each package, once it runs, leaves a file.

const VERSION = '9.8.7';
const PACKAGE = `svc-${VERSION}-linux-x64.tar.gz`;
const TOOLS =
  'sh awk basename cat chmod cp cut dirname gzip head id ln ls mkdir mktemp mv pwd readlink rm sha256sum tar tr uname ssh-keygen';

const sha256 = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

describe.skipIf(process.platform !== 'linux' || process.arch !== 'x64')('the install script', () => {
  let root: string;
  let signed: string;
  let release: string;
  let prefix: string;

  function makeKey(name: string): string {
    const file = join(root, name);
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', file]);
    return file;
  }

  /** Writes a signed release of that version, whose program says so. */
  function writeRelease(out: string, version: string, key: string): void {
    const files = join(root, `files-${version}`);
    mkdirSync(join(files, 'svc/bin'), { recursive: true });
    writeFileSync(join(files, 'svc/bin/svc'), `#!/bin/sh\necho svc ${version}\n`, { mode: 0o755 });
    mkdirSync(out);
    const file = `svc-${version}-linux-x64.tar.gz`;
    execFileSync('tar', ['-czf', join(out, file), '-C', files, '.']);
    writeFileSync(join(out, CHECKSUMS), `${sha256(join(out, file))}  ${file}\n`);
    signChecksums(key, out);
    writeInstallScript(version, publicKeyOf(key), out);
  }

  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'svc-install script-'));
    makeKey('owner');
    signed = join(root, 'signed');
    writeRelease(signed, VERSION, join(root, 'owner'));
  });
  afterAll(() => rmSync(root, { recursive: true }));
  beforeEach(() => {
    release = mkdtempSync(join(root, 'release-'));
    cpSync(signed, release, { recursive: true });
    prefix = join(mkdtempSync(join(root, 'place-')), 'the prefix');
  });

  interface Run {
    readonly code: number | null;
    readonly text: string;
  }
  function install(args: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Run {
    const script = join(release, 'install.sh');
    const place = ['--from', release, '--prefix', prefix];
    const temporary = mkdtempSync(join(root, 'temporary-'));
    const all = { PATH: process.env['PATH'], HOME: root, TMPDIR: temporary, ...env };
    const run = spawnSync('sh', [script, ...place, ...args], { encoding: 'utf8', env: all });
    // Whatever happens, nothing of the work is left.
    expect(readdirSync(temporary)).toEqual([]);
    return { code: run.status, text: run.stdout + run.stderr };
  }
  /** Expects a refusal with this text, and that nothing was written. */
  function expectRefusal(run: Run, text: string | RegExp): void {
    expect(run.text).toMatch(text);
    expect(run.code).not.toBe(0);
    expect(existsSync(prefix)).toBe(false);
  }

  it('installs what the key has signed, into a folder with a space', () => {
    expect(install()).toMatchObject({
      code: 0,
      text: expect.stringContaining(`svc ${VERSION} is installed: ${prefix}`),
    });
    expect(execFileSync(join(prefix, 'bin/svc'), { encoding: 'utf8' })).toBe(`svc ${VERSION}\n`);
    expect(readdirSync(join(prefix, 'lib'))).toEqual([`svc-${VERSION}`]);
    expect(readdirSync(join(prefix, 'bin'))).toEqual(['svc']);
  });

  it('installs the same version again, and a newer one beside it, which it names', () => {
    expect(install().code).toBe(0);
    expect(install().code).toBe(0);
    expect(readdirSync(join(prefix, 'lib'))).toEqual([`svc-${VERSION}`]);
    const newer = join(root, 'newer');
    writeRelease(newer, '9.9.0', join(root, 'owner'));
    release = newer;
    const run = install();
    expect(run.text).toContain(`an earlier one is in ${prefix}/lib/svc-${VERSION}`);
    expect(execFileSync(join(prefix, 'bin/svc'), { encoding: 'utf8' })).toBe('svc 9.9.0\n');
  });

  it('refuses a package that was changed', () => {
    appendFileSync(join(release, PACKAGE), 'x');
    expectRefusal(install(), `${PACKAGE} has another checksum than the signed one. Nothing was installed`);
  });

  it('refuses a package that was changed together with its checksum', () => {
    appendFileSync(join(release, PACKAGE), 'x');
    writeFileSync(join(release, CHECKSUMS), `${sha256(join(release, PACKAGE))}  ${PACKAGE}\n`);
    expectRefusal(install(), 'SHA256SUMS does not have the signature');
  });

  it('refuses a signature by another key', () => {
    signChecksums(makeKey('stranger'), release);
    expectRefusal(install(), 'SHA256SUMS does not have the signature');
  });

  it('refuses a signature that the key made for something else', () => {
    rmSync(join(release, SIGNATURE));
    const args = ['-q', '-Y', 'sign', '-n', 'git', '-f', join(root, 'owner'), join(release, CHECKSUMS)];
    execFileSync('ssh-keygen', args, { stdio: 'ignore' });
    expectRefusal(install(), 'SHA256SUMS does not have the signature');
  });

  it.each([
    ['empty', ''],
    ['no signature', 'not a signature\n'],
  ])('refuses a signature that is %s', (_what, text) => {
    writeFileSync(join(release, SIGNATURE), text);
    expectRefusal(install(), 'SHA256SUMS does not have the signature');
  });

  it.each([CHECKSUMS, SIGNATURE, PACKAGE])('refuses a release without %s', (file) => {
    rmSync(join(release, file));
    expectRefusal(install(), `${file} could not be read`);
  });

  it('refuses an older release in place of the new one, though it is signed too', () => {
    const older = join(root, 'older');
    writeRelease(older, '9.0.0', join(root, 'owner'));
    for (const file of [CHECKSUMS, SIGNATURE]) copyFileSync(join(older, file), join(release, file));
    copyFileSync(join(older, 'svc-9.0.0-linux-x64.tar.gz'), join(release, PACKAGE));
    expectRefusal(install(), `has no ${PACKAGE}: it belongs to another version`);
  });

  it('does nothing if it was cut off on its way, wherever', () => {
    const text = readFileSync(join(release, 'install.sh'), 'utf8');
    const end = text.indexOf('main "$@"');
    for (let length = 40; length < end; length += 97) {
      writeFileSync(join(release, 'install.sh'), text.slice(0, length));
      install();
      expect(existsSync(prefix), `cut off after ${length} bytes`).toBe(false);
    }
  });

  it.each([
    ['a program of somebody else', (place: string): void => writeFileSync(place, '#!/bin/sh\n')],
    ['a link to a checkout', (place: string): void => symlinkSync('/src/svc/bin/svc', place)],
    ['what npm installed', (place: string): void => symlinkSync('../lib/node_modules/svc/bin/svc', place)],
  ])('replaces no svc that is %s', (_what, write) => {
    mkdirSync(join(prefix, 'bin'), { recursive: true });
    write(join(prefix, 'bin/svc'));
    const run = install();
    expect(run.code).toBe(1);
    expect(run.text).toContain(`${prefix}/bin/svc is`);
    expect(existsSync(join(prefix, 'lib'))).toBe(false);
  });

  /** A PATH with only these programs. */
  function pathOf(names: readonly string[]): string {
    const folder = mkdtempSync(join(root, 'path-'));
    for (const name of names) {
      symlinkSync(execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim(), join(folder, name));
    }
    return folder;
  }

  it.each(['ssh-keygen', 'sha256sum'])('installs nothing without %s, which checks', (missing) => {
    const path = pathOf(TOOLS.split(' ').filter((name) => name !== missing));
    expectRefusal(install([], { PATH: path }), new RegExp(`install.sh: (?:neither )?${missing} `));
  });

  it('says which Node another machine needs', () => {
    const path = pathOf(TOOLS.split(' ').filter((name) => name !== 'uname'));
    writeFileSync(join(path, 'uname'), '#!/bin/sh\n[ "$1" = -s ] && echo Darwin || echo arm64\n');
    chmodSync(join(path, 'uname'), 0o755);
    expectRefusal(install([], { PATH: path }), "on Darwin arm64 svc runs with the machine's own Node");
  });

  it('installs with npm, without scripts, on another machine', () => {
    const npmFile = `svc-${VERSION}.tgz`;
    writeFileSync(join(release, npmFile), 'package');
    appendFileSync(join(release, CHECKSUMS), `${sha256(join(release, npmFile))}  ${npmFile}\n`);
    signChecksums(join(root, 'owner'), release);
    const path = pathOf([...TOOLS.split(' ').filter((name) => name !== 'uname'), 'node']);
    const said = join(path, 'said');
    writeFileSync(join(path, 'uname'), '#!/bin/sh\n[ "$1" = -s ] && echo Darwin || echo arm64\n', { mode: 0o755 });
    writeFileSync(join(path, 'npm'), `#!/bin/sh\necho "$@" >'${said}'\n`, { mode: 0o755 });
    expect(install([], { PATH: path }).code).toBe(0);
    expect(readFileSync(said, 'utf8')).toMatch(`install --global --ignore-scripts --prefix ${prefix} `);
  });

  it.each([
    [['--wrong'], "unknown argument '--wrong'"],
    [['--prefix'], '--prefix needs a value'],
    [['--from', ''], '--from needs a value'],
    [['--from', 'ftp://example.com'], 'only http, https and folders'],
  ])('refuses %j and says what is wrong', (args, text) => {
    const run = install(args);
    expect(run.code).not.toBe(0);
    expect(run.text).toContain(text);
    expect(existsSync(prefix)).toBe(false);
  });
});

describe('publicKeyOf', () => {
  it.each(['', 'ssh-ed25519', "ssh-ed25519 AAAA'; rm -rf ~; '", 'PRIVATE'])('refuses %j as a public key', (text) => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-key-'));
    writeFileSync(join(folder, 'key.pub'), text);
    expect(() => publicKeyOf(join(folder, 'key.pub'))).toThrow('is no key of OpenSSH');
    rmSync(folder, { recursive: true });
  });
});
