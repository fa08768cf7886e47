import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { buildRelease } from '../../tools/package/build_release.ts';
import { type ArchiveEntry, startTestRegistry, type TestRegistry, type TestRelease } from '../mcp/npm_registry.ts';
import { IS_FULL } from '../support/full_counts.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { ROOT, runOk, systemPath } from '../support/program.ts';
import { Svc } from '../support/svc.ts';
import { createTestCa, type TestCa } from '../support/test_ca.ts';
import { startTlsUpstream, type TlsUpstream } from '../support/tls_upstream.ts';

// Each way to install svc, from nothing to a first request with a credential.

const HOST = 'api.example.test';
/** What npm installs beside the package; parts for other machines are optional. */
const DEPENDENCIES = ['libsql', '@neon-rs/load', 'detect-libc', '@libsql/linux-x64-gnu'];

/** What takes long is not there otherwise, because nothing may be skipped. */
const ONLY_FULL = IS_FULL ? [''] : [];

describe.skipIf(process.platform !== 'linux' || process.arch !== 'x64')('svc is installed', () => {
  let ca: TestCa;
  let upstream: TlsUpstream;
  let registry: TestRegistry;
  let root: string;
  let release: string;

  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), 'svc-e2e-install-'));
    release = join(root, 'release');
    ca = await createTestCa();
    upstream = await startTlsUpstream(await ca.issue([HOST]));
    registry = await startTestRegistry(DEPENDENCIES.map(releaseOf));
    await buildRelease(release, { debian: IS_FULL, image: IS_FULL });
  });
  afterAll(async () => {
    await Promise.all([upstream.close(), registry.stop()]);
    rmSync(root, { recursive: true, force: true });
  });

  /** Starts the installed program with an empty home, and has it add a credential to a request. */
  async function firstRequest(program: string, path: string): Promise<void> {
    const token = plantSecret();
    const home = join(root, 'home');
    rmSync(home, { recursive: true, force: true });
    mkdirSync(home);
    const env = { HOME: home, PATH: path };
    const resolve = [`${HOST}:127.0.0.1:${upstream.port}`];
    const svc = await Svc.up({ command: [program, 'up'], upstreamCaFiles: [ca.file], resolve, env });
    try {
      const call = { cwd: home, env: { ...env, SVC_HOME: svc.home } };
      await runOk(program, ['secret', 'set', 'user/api', '--stdin'], { ...call, input: token });
      await runOk(program, ['binding', 'add', HOST, '--scheme', 'bearer', '--credential', 'vault://user/api'], call);
      upstream.reset();
      await runOk(program, ['run', '--', 'curl', '-sS', '--fail', `https://${HOST}/`], call);
      expect(upstream.requests.at(-1)?.headers('authorization')).toEqual([`Bearer ${token}`]);
    } finally {
      await svc.stop();
    }
  }

  it('from the npm package, without install scripts', async () => {
    const [prefix, home] = [join(root, 'prefix'), join(root, 'empty')];
    mkdirSync(home);
    const node = join(root, 'node');
    mkdirSync(node);
    symlinkSync(process.execPath, join(node, 'node'));
    const path = [node, systemPath()].join(delimiter);
    const [archive = ''] = readdirSync(release).filter((name) => name.endsWith('.tgz'));
    expect(manifestOf(join(release, archive))).not.toHaveProperty('scripts');
    const install = ['install', '--global', '--prefix', prefix, '--registry', registry.url, join(release, archive)];
    await runOk('npm', install, { cwd: home, env: { HOME: home, PATH: path } });
    expect(readdirSync(join(prefix, 'lib/node_modules/svc'))).toContain('THIRD_PARTY_NOTICES.txt');
    await firstRequest(join(prefix, 'bin/svc'), path);
  });

  it.each(ONLY_FULL)('from the Debian package, with its own Node%s', async () => {
    const clean = join(root, 'debian');
    mkdirSync(join(clean, 'var/lib/dpkg/info'), { recursive: true });
    mkdirSync(join(clean, 'var/lib/dpkg/updates'));
    writeFileSync(join(clean, 'var/lib/dpkg/status'), '');
    const [file = ''] = readdirSync(release).filter((name) => name.endsWith('.deb'));
    await runOk('dpkg', [`--root=${clean}`, '--force-depends', '--install', join(release, file)]);
    const program = join(clean, 'usr/bin/svc');
    expect(readlinkSync(program)).toBe('../lib/svc/bin/svc');
    await firstRequest(program, '/usr/sbin:/usr/bin:/sbin:/bin');
  });

  it.each(ONLY_FULL)('with checksums that are the same for the same sources%s', async () => {
    const again = join(root, 'again');
    await buildRelease(again, { debian: IS_FULL, image: IS_FULL });
    const sums = readFileSync(join(again, 'SHA256SUMS'), 'utf8');
    expect(sums).toBe(readFileSync(join(release, 'SHA256SUMS'), 'utf8'));
    execFileSync('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: release });
    const [archive = ''] = readdirSync(again).filter((name) => name.endsWith('.tgz'));
    expect(sums).toContain(
      createHash('sha256')
        .update(readFileSync(join(again, archive)))
        .digest('hex'),
    );
  });
});

function manifestOf(archive: string): unknown {
  return JSON.parse(execFileSync('tar', ['-xzOf', archive, 'package/package.json'], { encoding: 'utf8' }));
}

/** An installed package, as the registry has it. */
function releaseOf(name: string): TestRelease {
  const folder = join(ROOT, 'node_modules', name);
  const text = readFileSync(join(folder, 'package.json'), 'utf8');
  const manifest = z.looseObject({ name: z.string(), version: z.string() }).parse(JSON.parse(text));
  return { manifest, entries: entriesOf(folder) };
}

function entriesOf(folder: string): readonly ArchiveEntry[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true });
  return files
    .map((each) => ({ each, path: join(each.parentPath, each.name) }))
    .filter(({ each, path }) => each.isFile() && statSync(path).isFile() && each.name !== 'package.json')
    .map(({ path }) => ({ path: `package/${relative(folder, path)}`, content: readFileSync(path) }));
}
