import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runCli, TestHome, type RunResult } from '../../cli/testing/run_cli.ts';
import { writeReleaseFile } from '../../tools/package/release_file.ts';
import { publicKeyOf, signChecksums } from '../../tools/package/sign_release.ts';

// `svc upgrade` against releases that keys of this test have signed.

const CHANGELOG = '# Changes\n\n## 5.0.0\n\n- five\u001B[31m\n\n## 4.0.0\n\n- four\n';
const URL_OF_RELEASE = 'https://downloads.example.com/svc';

describe('svc upgrade', () => {
  let folder: string;
  let key: string;
  let root: string;
  let release: string;
  let home: TestHome;

  function makeKey(name: string): string {
    const file = join(folder, name);
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', file]);
    return file;
  }
  /** Writes what `svc upgrade` reads of a release, and signs it. */
  function writeRelease(changelog: string, by = key): void {
    rmSync(release, { recursive: true, force: true });
    mkdirSync(release);
    writeFileSync(join(release, 'CHANGELOG.md'), changelog);
    const sum = createHash('sha256').update(changelog).digest('hex');
    writeFileSync(join(release, 'SHA256SUMS'), `${sum}  CHANGELOG.md\n${'cd'.repeat(32)}  install.sh\n`);
    signChecksums(by, release);
  }

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'svc-upgrade-'));
    key = makeKey('owner');
    root = join(folder, 'prefix/lib/svc-4.0.0');
    release = join(folder, 'release');
    mkdirSync(root, { recursive: true });
    writeFileSync(join(root, 'CHANGELOG.md'), '## 4.0.0\n\n- four\n');
    writeReleaseFile(root, 'archive', publicKeyOf(key));
    home = new TestHome();
  });
  afterAll(() => {
    home.remove();
    rmSync(folder, { recursive: true });
  });
  beforeEach(() => writeRelease(CHANGELOG));

  const upgrade = (...args: readonly string[]): Promise<RunResult> => runCli(home, ['upgrade', ...args], { root });

  it('says what is new in a folder, and how to install it, with the signed checksum', async () => {
    const { code, stdout } = await upgrade('--from', release);
    expect(code).toBe(0);
    expect(stdout).toContain('new in 5.0.0:\n- five');
    expect(stdout).not.toContain('\u001B');
    expect(stdout).not.toContain('4.0.0:');
    const check = `echo '${'cd'.repeat(32)}  install.sh' | sha256sum --check`;
    expect(stdout).toContain(
      `  cd ${release} && ${check} && sh install.sh --from . --prefix ${join(folder, 'prefix')}\n`,
    );
    expect(stdout).toContain('svc db backup FILE');
    expect(stdout).toContain('An older svc refuses it then');
  });

  it('reads three files from an address, and nothing else', async () => {
    const { stdout, calls } = await runCli(home, ['upgrade', '--from', `${URL_OF_RELEASE}/`, '--json'], {
      root,
      answer: ({ url }) => {
        const file = url.pathname.replace('/svc/', '');
        if (url.hostname !== 'downloads.example.com') return { status: 503 };
        // A signature is text, too.
        return { status: 200, body: readFileSync(join(release, file), 'utf8') };
      },
    });
    expect(JSON.parse(stdout)).toMatchObject({
      version: '4.0.0',
      installed_by: 'archive',
      newest: '5.0.0',
      changes: [{ version: '5.0.0' }],
      steps: [
        expect.anything(),
        expect.stringContaining(`curl -fsSLO ${URL_OF_RELEASE}/install.sh && echo`),
        expect.anything(),
      ],
    });
    const asked = calls
      .filter(({ url }) => url.origin === new URL(URL_OF_RELEASE).origin)
      .map(({ url }) => url.pathname);
    expect(asked).toEqual(['/svc/SHA256SUMS', '/svc/SHA256SUMS.sig', '/svc/CHANGELOG.md']);
  });

  it('asks nobody but the programs of this machine without --from', async () => {
    const { code, stdout, calls } = await upgrade();
    expect(code).toBe(0);
    expect(stdout).toContain('in 4.0.0:\n- four');
    expect(new Set(calls.map(({ url }) => url.hostname))).toEqual(new Set(['127.0.0.1']));
  });

  it.each([
    ['the same', '## 4.0.0\n\n- four\n', 'the release is the same version: there is nothing to install'],
    ['an older', '## 3.9.9\n\n- three\n', 'the release is 3.9.9, which is older: there is nothing to install'],
  ])('proposes nothing for %s version', async (_what, changelog, text) => {
    writeRelease(changelog);
    const { stdout } = await upgrade('--from', release);
    expect(stdout).toContain(text);
    expect(stdout).not.toContain('to upgrade');
  });

  it('believes no release of another key', async () => {
    writeRelease(CHANGELOG, makeKey('stranger'));
    expect(await upgrade('--from', release)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('does not have the signature of the key of this svc'),
    });
  });

  it('believes no list, changelog or signature that was changed', async () => {
    writeFileSync(join(release, 'CHANGELOG.md'), `${CHANGELOG}- and more\n`);
    expect((await upgrade('--from', release)).stderr).toContain('has another checksum than the signed one');
    writeFileSync(join(release, 'SHA256SUMS'), `${readFileSync(join(release, 'SHA256SUMS'), 'utf8')}\n`);
    expect((await upgrade('--from', release)).stderr).toContain('does not have the signature');
    writeFileSync(join(release, 'SHA256SUMS.sig'), '');
    expect((await upgrade('--from', release)).stderr).toContain('does not have the signature');
    rmSync(join(release, 'SHA256SUMS.sig'));
    expect((await upgrade('--from', release)).stderr).toContain('SHA256SUMS.sig cannot be read');
  });

  it('stops reading a reply without an end', async () => {
    const { code, stderr } = await runCli(home, ['upgrade', '--from', URL_OF_RELEASE], {
      root,
      answer: () => ({ status: 200, body: 'x'.repeat(5_000_000) }),
    });
    expect([code, stderr]).toEqual([1, expect.stringContaining('is longer than')]);
  });

  it('says so if the signature cannot be checked', async () => {
    writeReleaseFile(root, 'archive', null);
    expect((await upgrade('--from', release)).stderr).toContain('was built without a key');
    writeReleaseFile(root, 'archive', publicKeyOf(key));
  });

  it.each([
    ['', '--from is empty'],
    ['ftp://example.com', 'give an http or https address'],
    ['https://ada:secret@example.com', 'give an http or https address'],
    ['https://example.com/?a=b', 'give an http or https address'],
    ['/nowhere', 'cannot be read'],
  ])('refuses --from %j', async (from, text) => {
    const { code, stderr } = await upgrade('--from', from);
    expect(code).not.toBe(0);
    expect(stderr).toContain(text);
    expect(stderr).not.toContain('secret');
  });

  it('sends a checkout to git', async () => {
    const checkout = join(folder, 'checkout');
    mkdirSync(join(checkout, 'cli'), { recursive: true });
    writeFileSync(join(checkout, 'cli/main.ts'), '');
    symlinkSync(join(root, 'CHANGELOG.md'), join(checkout, 'CHANGELOG.md'));
    const plain = await runCli(home, ['upgrade'], { root: checkout });
    expect(plain.stdout).toContain('  git pull\n');
    const asked = await runCli(home, ['upgrade', '--from', release], { root: checkout });
    expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining('git pull')]);
  });
});
