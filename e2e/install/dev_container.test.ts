import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { packDevContainerFeature } from '../../tools/package/dev_container_feature.ts';
import { writeInstallScript } from '../../tools/package/install_script.ts';
import { CHECKSUMS, publicKeyOf, signChecksums } from '../../tools/package/sign_release.ts';

// The dev container feature, run as a tool does: unpacked, as root, with options as variables. The root is this machine's,
// read-only and without a network, with an empty /usr/local.

const VERSION = '9.8.7';
const feature = z.object({
  id: z.string().regex(/^[a-z0-9_-]+$/),
  version: z.string().regex(/^\d+\.\d+\.\d+$/),
  name: z.string(),
  options: z.record(
    z.string().regex(/^[a-z_]+$/),
    z.object({ type: z.enum(['string', 'boolean']), default: z.unknown(), description: z.string() }),
  ),
});

describe.skipIf(process.platform !== 'linux' || process.arch !== 'x64')('the dev container feature', () => {
  let folder: string;
  let release: string;
  let unpacked: string;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'svc-feature-'));
    release = join(folder, 'release');
    unpacked = join(folder, 'feature');
    const key = join(folder, 'owner');
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', key]);
    mkdirSync(join(folder, 'files/svc/bin'), { recursive: true });
    writeFileSync(join(folder, 'files/svc/bin/svc'), `#!/bin/sh\necho svc ${VERSION}\n`, { mode: 0o755 });
    mkdirSync(release);
    const archive = `svc-${VERSION}-linux-x64.tar.gz`;
    execFileSync('tar', ['-czf', join(release, archive), '-C', join(folder, 'files'), '.']);
    const sum = createHash('sha256').update(readFileSync(join(release, archive)));
    writeFileSync(join(release, CHECKSUMS), `${sum.digest('hex')}  ${archive}\n`);
    signChecksums(key, release);
    writeInstallScript(VERSION, publicKeyOf(key), release);
    const packed = packDevContainerFeature(VERSION, join(folder, 'work'), release);
    mkdirSync(unpacked);
    execFileSync('tar', ['-xzf', join(release, packed), '-C', unpacked]);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  function install(options: Readonly<Record<string, string>>, from = release): { code: number | null; text: string } {
    const box = ['--ro-bind', '/', '/', '--tmpfs', '/usr/local', '--tmpfs', '/tmp', '--proc', '/proc', '--dev', '/dev'];
    const seen = ['--ro-bind', from, '/tmp/release', '--ro-bind', unpacked, '/tmp/feature', '--chdir', '/tmp/feature'];
    const command = 'sh ./install.sh && /usr/local/bin/svc && ls /usr/local/lib';
    const args = [...box, ...seen, '--unshare-all', '--uid', '0', '--gid', '0', 'sh', '-c', command];
    const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', _REMOTE_USER: 'vscode', ...options };
    const { status, stdout, stderr } = spawnSync('bwrap', args, { encoding: 'utf8', env });
    return { code: status, text: stdout + stderr };
  }

  it('has a manifest whose options are those that its script reads', () => {
    const manifest = feature.parse(JSON.parse(readFileSync(join(unpacked, 'devcontainer-feature.json'), 'utf8')));
    expect(manifest).toMatchObject({ id: 'svc', version: VERSION });
    const script = readFileSync(join(unpacked, 'install.sh'), 'utf8');
    // The tool writes the names of options in capitals.
    const read = Object.keys(manifest.options).filter((name) => script.includes(`\${${name.toUpperCase()}:-`));
    expect(read).toEqual(['release', 'bubblewrap']);
  });

  it('installs svc for every user of the image', () => {
    const done = install({ RELEASE: '/tmp/release' });
    expect(done.text).toContain(`svc ${VERSION} is installed: /usr/local/bin/svc`);
    expect(done.text).toMatch(new RegExp(`^svc ${VERSION}\nsvc-${VERSION}$`, 'm'));
    expect(done.code).toBe(0);
  });

  it('fetches nothing if nobody says from where', () => {
    const done = install({});
    expect(done.code).not.toBe(0);
    expect(done.text).toContain("the option 'release' is missing");
  });

  it('installs no release that was changed', () => {
    const changed = join(folder, 'changed');
    cpSync(release, changed, { recursive: true });
    writeFileSync(join(changed, `svc-${VERSION}-linux-x64.tar.gz`), 'x');
    const done = install({ RELEASE: '/tmp/release' }, changed);
    expect(done.code).not.toBe(0);
    expect(done.text).toContain('another checksum than the signed one');
  });
});
