import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { z } from 'zod';
import { ROOT } from './build_package.ts';
import { SOURCE_DATE } from './settle_files.ts';

const locked = z.object({
  /** Of a package that is installed under another name. */
  name: z.string().optional(),
  version: z.string(),
  integrity: z.string(),
  license: z.string().optional(),
});
const lockFile = z.object({ packages: z.record(z.string(), z.unknown()) });

/** A file of the release, and the folders of the packages whose code is in it. */
export interface Contents {
  readonly file: string;
  readonly folders: readonly string[];
}

/**
 * Writes what is in a release as a bill of materials: CycloneDX 1.6, which scanners read. Each component is a package whose code is in a
 * file, with the hash by which the lock file has fetched it, and names those files. What only the tests use is not in it.
 */
export function writeSbom(
  svc: { readonly name: string; readonly version: string },
  contents: readonly Contents[],
  out: string,
): string {
  const file = `${svc.name}-${svc.version}.cdx.json`;
  writeFileSync(join(out, file), `${JSON.stringify(sbomOf(svc, contents), null, 2)}\n`);
  return file;
}

function sbomOf(svc: { readonly name: string; readonly version: string }, contents: readonly Contents[]): object {
  const { packages } = lockFile.parse(JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')));
  const folders = [...new Set(contents.flatMap((each) => each.folders))].toSorted();
  const components = folders.map((folder) => {
    const entry = locked.safeParse(packages[relative(ROOT, folder)]);
    if (!entry.success) throw new Error(`package-lock.json has no hash of ${relative(ROOT, folder)}`);
    const files = contents.filter((each) => each.folders.includes(folder)).map((each) => each.file);
    return componentOf(folder, entry.data, files);
  });
  // No package URL: at the public registry the name is somebody else's.
  const root = `${svc.name}@${svc.version}`;
  const body = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      timestamp: new Date(SOURCE_DATE * 1000).toISOString(),
      component: { type: 'application', 'bom-ref': root, name: svc.name, version: svc.version },
    },
    components,
    dependencies: [{ ref: root, dependsOn: components.map((component) => component['bom-ref']) }],
  };
  return { $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json', ...body, serialNumber: serialOf(body) };
}

interface Component {
  readonly type: 'library';
  readonly 'bom-ref': string;
  readonly [field: string]: unknown;
}

function componentOf(folder: string, entry: z.output<typeof locked>, files: readonly string[]): Component {
  const { version, integrity, license } = entry;
  // The same release of a package may lie in two folders, one of them nested.
  const nested = relative(join(ROOT, 'node_modules'), folder);
  const name = entry.name ?? nested.split('/node_modules/').at(-1) ?? nested;
  const purl = purlOf(name, version);
  return {
    type: 'library',
    'bom-ref': nested === name ? purl : `${purl}#${nested}`,
    name,
    version,
    purl,
    hashes: [{ alg: 'SHA-512', content: Buffer.from(integrity.replace(/^sha512-/, ''), 'base64').toString('hex') }],
    ...(license === undefined ? {} : { licenses: [{ expression: license }] }),
    properties: files.map((value) => ({ name: 'svc:file', value })),
  };
}

/** The package URL; the `@` of a scope is encoded (purl specification, rules for each component). */
function purlOf(name: string, version: string): string {
  return `pkg:npm/${name.replace(/^@/, '%40')}@${version}`;
}

/** The same contents have the same number: a UUID of version 8, whose bits are of our own making (RFC 9562, section 5.8). */
function serialOf(body: object): string {
  const bytes = createHash('sha256').update(JSON.stringify(body)).digest().subarray(0, 16);
  bytes[6] = (bytes.readUInt8(6) & 0x0f) | 0x80;
  bytes[8] = (bytes.readUInt8(8) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return `urn:uuid:${hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')}`;
}
