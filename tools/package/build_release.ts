import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { bundle, ROOT } from './build_package.ts';
import { buildDebianPackage } from './debian_package.ts';
import { packDevContainerFeature } from './dev_container_feature.ts';
import { writeFormula } from './homebrew_formula.ts';
import { IMAGE_NATIVE, writeImageContext } from './image_context.ts';
import { writeInstallScript } from './install_script.ts';
import parts from './native/native_parts.json' with { type: 'json' };
import { packNpmPackage, readRootManifest, writeNpmPackage } from './npm_package.ts';
import { packPortableArchive, RUNTIME_X64 } from './portable_archive.ts';
import { type Contents, writeSbom } from './sbom.ts';
import { CHECKSUMS, publicKeyOf, signChecksums } from './sign_release.ts';
import { packagesOf } from './third_party_notices.ts';

const CHANGELOG = 'CHANGELOG.md';

export interface WantedRelease {
  readonly debian?: boolean;
  readonly image?: boolean;
  /** What runs where it is unpacked, on Linux x86_64. */
  readonly archive?: boolean;
  /** Where the release will be: for the formula of Homebrew. */
  readonly url?: string;
  /** The file of the owner's key; without one there is no signature, no install script and no dev container feature. */
  readonly sign?: string;
}

/**
 * Builds what is installed into a folder: the npm package and what else is wanted, the bill of materials, and the checksums of all of
 * them. The same sources and the same locked dependencies give the same bytes, but for a signature, which the key decides.
 */
export async function buildRelease(out: string, wanted: WantedRelease): Promise<readonly string[]> {
  mkdirSync(out, { recursive: true });
  const work = mkdtempSync(join(tmpdir(), 'svc-release-'));
  try {
    const signer = wanted.sign === undefined ? null : publicKeyOf(wanted.sign);
    const files = await buildFiles(out, work, wanted, signer);
    if (signer !== null) {
      const { version } = readRootManifest();
      files.push(writeInstallScript(version, signer, out));
      files.push(packDevContainerFeature(version, join(work, 'feature'), out));
    }
    const sums = files.map((file) => `${sha256(join(out, file))}  ${file}\n`);
    writeFileSync(join(out, CHECKSUMS), sums.join(''));
    const signature = wanted.sign === undefined ? [] : [signChecksums(wanted.sign, out)];
    return [...files, CHECKSUMS, ...signature];
  } finally {
    rmSync(work, { recursive: true });
  }
}

async function buildFiles(out: string, work: string, wanted: WantedRelease, signer: string | null): Promise<string[]> {
  const folder = join(work, 'package');
  const chunks = await bundle();
  writeNpmPackage(chunks, folder, signer);
  const bundled = packagesOf(chunks.flatMap(({ moduleIds }) => moduleIds));
  const contents: Contents[] = [];
  const files: string[] = [];
  /** Notes that these files, of which the first is what is installed, have these packages beside the bundle. */
  const add = (made: readonly string[], beside: readonly string[]): void => {
    const [file = ''] = made;
    contents.push({ file, folders: [...bundled, ...beside.map((name) => join(ROOT, 'node_modules', name))] });
    files.push(...made);
  };
  const npmFile = packNpmPackage(folder, out);
  // npm installs one or two of them beside it.
  add([npmFile], Object.keys(parts));
  if (wanted.debian === true) {
    add([buildDebianPackage(folder, join(work, 'debian'), out, signer)], RUNTIME_X64);
  }
  if (wanted.archive === true) {
    add([packPortableArchive(folder, join(work, 'archive'), out, signer)], RUNTIME_X64);
  }
  if (wanted.image === true) {
    add(writeImageContext(folder, join(work, 'image'), out, signer), IMAGE_NATIVE);
  }
  if (wanted.url !== undefined) files.push(writeFormula(wanted.url, npmFile, sha256(join(out, npmFile)), out));
  copyFileSync(join(ROOT, CHANGELOG), join(out, CHANGELOG));
  return [...files, CHANGELOG, writeSbom(readRootManifest(), contents, out)];
}

function sha256(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: {
      deb: { type: 'boolean' },
      image: { type: 'boolean' },
      archive: { type: 'boolean' },
      url: { type: 'string' },
      sign: { type: 'string' },
    },
    allowPositionals: true,
  });
  const out = resolve(positionals[0] ?? 'release');
  const { deb, ...wanted } = values;
  for (const file of await buildRelease(out, { ...wanted, ...(deb === undefined ? {} : { debian: deb }) })) {
    process.stdout.write(`${join(out, file)}\n`);
  }
}
