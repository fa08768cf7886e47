import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { z } from 'zod';

/** A member of an archive: a file, or a link if it has a target. */
export interface ArchiveEntry {
  readonly path: string;
  readonly content?: string | Uint8Array;
  readonly linkTo?: string;
  readonly isExecutable?: boolean;
}

/** One release, as its registry describes it. */
export interface TestRelease {
  readonly manifest: { readonly name: string; readonly version: string } & Readonly<Record<string, unknown>>;
  readonly entries: readonly ArchiveEntry[];
  /** Overrides what the registry says about the archive. */
  readonly dist?: Readonly<Record<string, unknown>>;
}

/** A registry of npm packages on this machine. */
export interface TestRegistry {
  readonly url: string;
  /** The paths that were requested. */
  readonly requests: readonly string[];
  /** Adds a release, or replaces one. */
  publish(release: TestRelease): void;
  /** Is asked before each answer; the request waits for it. */
  beforeAnswer: (path: string) => Promise<void>;
  stop(): Promise<void>;
}

interface Published {
  readonly release: TestRelease;
  readonly archive: Buffer;
}

/** Starts a registry of packages on a free port of this machine. */
export async function startTestRegistry(releases: readonly TestRelease[] = []): Promise<TestRegistry> {
  const published = new Map<string, Published>();
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '/');
    requests.push(path);
    void answer(path, request.method === 'HEAD', response);
  });
  const answer = async (path: string, isHead: boolean, response: ServerResponse): Promise<void> => {
    await registry.beforeAnswer(path);
    const body = answerTo(path, published, registry.url);
    response.writeHead(body === null ? 404 : 200, { 'content-length': body?.length ?? 2 });
    response.end(isHead ? '' : (body ?? '{}'));
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const registry: TestRegistry = {
    url: urlOf(server),
    requests,
    publish(release) {
      const { name, version } = release.manifest;
      published.set(`${name}@${version}`, { release, archive: archiveOf(release) });
    },
    beforeAnswer: () => Promise.resolve(),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  for (const release of releases) registry.publish(release);
  return registry;
}

function urlOf(server: Server): string {
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
}

function answerTo(path: string, published: ReadonlyMap<string, Published>, url: string): Buffer | null {
  const [, archived] = /^\/archives\/(.+)\.tgz$/.exec(path) ?? [];
  if (archived !== undefined) return published.get(archived)?.archive ?? null;
  const ours = [...published.values()].filter(({ release }) => `/${release.manifest.name}` === path);
  const newest = ours.at(-1)?.release.manifest.version;
  if (newest === undefined) return null;
  const versions = Object.fromEntries(ours.map((each) => [each.release.manifest.version, describe(each, url)]));
  return Buffer.from(JSON.stringify({ name: path.slice(1), 'dist-tags': { latest: newest }, versions }));
}

function describe({ release, archive }: Published, url: string): object {
  const { name, version } = release.manifest;
  const integrity = `sha512-${createHash('sha512').update(archive).digest('base64')}`;
  const shasum = createHash('sha1').update(archive).digest('hex');
  const tarball = `${url}/archives/${encodeURIComponent(`${name}@${version}`)}.tgz`;
  const scripts = z.record(z.string(), z.unknown()).safeParse(release.manifest['scripts']).data ?? {};
  const hasInstallScript = ['preinstall', 'install', 'postinstall'].some((each) => Object.hasOwn(scripts, each));
  const dist = { tarball, integrity, shasum, ...release.dist };
  return { ...release.manifest, ...(hasInstallScript && { hasInstallScript }), dist };
}

function archiveOf({ manifest, entries }: TestRelease): Buffer {
  const all = [{ path: 'package/package.json', content: JSON.stringify(manifest) }, ...entries];
  return gzipSync(Buffer.concat([...all.map((entry) => memberOf(entry)), Buffer.alloc(1024)]), { level: 1 });
}

const BLOCK = 512;

const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, '0')}\0`;

/** A member in the ustar format; paths are written as they are, also hostile ones. */
function memberOf({ path, content = '', linkTo = '', isExecutable = false }: ArchiveEntry): Buffer {
  const body = typeof content === 'string' ? Buffer.from(content) : Buffer.from(content);
  const header = Buffer.alloc(BLOCK);
  const cut = path.length <= 100 ? -1 : path.indexOf('/', path.length - 101);
  header.write(path.slice(cut + 1), 0);
  header.write(octal(isExecutable ? 0o755 : 0o644, 8), 100);
  header.write(octal(0, 8), 108);
  header.write(octal(0, 8), 116);
  header.write(octal(body.length, 12), 124);
  header.write(octal(0, 12), 136);
  header.write('        ', 148);
  header.write(linkTo === '' ? '0' : '2', 156);
  header.write(linkTo, 157);
  header.write('ustar\u000000', 257);
  if (cut >= 0) header.write(path.slice(0, cut), 345);
  header.write(
    `${octal(
      header.reduce((sum, byte) => sum + byte, 0),
      7,
    )} `,
    148,
  );
  return Buffer.concat([header, body, Buffer.alloc((BLOCK - (body.length % BLOCK)) % BLOCK)]);
}

const lockFile = z.object({ packages: z.record(z.string(), z.looseObject({ dev: z.boolean().optional() })) });
const manifestFile = z.looseObject({
  name: z.string(),
  version: z.string(),
  dependencies: z.record(z.string(), z.string()).default({}),
});

/** The releases of an installed package and its dependencies, from the `node_modules` that a lock file describes. */
export function releasesInstalled(root: string, name: string): readonly TestRelease[] {
  const locked = lockFile.parse(JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))).packages;
  const found = new Map<string, TestRelease>();
  const open = [`node_modules/${name}`];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (found.has(path)) continue;
    const manifest = manifestFile.parse(JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8')));
    const { scripts: _scripts, devDependencies: _dev, ...published } = manifest;
    found.set(path, { manifest: published, entries: entriesOf(join(root, path), 'package') });
    for (const dependency of Object.keys(manifest.dependencies)) open.push(placeOf(dependency, path, locked));
  }
  return [...found.values()];
}

/** Where Node finds a dependency: in the package's own `node_modules`, or in that of a folder above. */
function placeOf(name: string, from: string, locked: Readonly<Record<string, unknown>>): string {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    const place = `${at === '' ? '' : `${at}/`}node_modules/${name}`;
    if (Object.hasOwn(locked, place)) return place;
    if (at === '') throw new Error(`the lock file has no ${name}`);
    if (!at.includes('/node_modules/')) at = '';
    if (at === '' && Object.hasOwn(locked, `node_modules/${name}`)) return `node_modules/${name}`;
  }
}

function entriesOf(folder: string, path: string): ArchiveEntry[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.name === 'node_modules' || (path === 'package' && entry.name === 'package.json')) return [];
    const [place, inner] = [join(folder, entry.name), `${path}/${entry.name}`];
    if (entry.isDirectory()) return entriesOf(place, inner);
    return entry.isFile() ? [{ path: inner, content: readFileSync(place) }] : [];
  });
}
