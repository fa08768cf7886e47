import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { bundle } from './build_package.ts';
import { buildDebianPackage } from './debian_package.ts';
import { writeImageContext } from './image_context.ts';
import { packNpmPackage, writeNpmPackage } from './npm_package.ts';

/** In the form that `sha256sum --check` reads. */
const CHECKSUMS = 'SHA256SUMS';

/**
 * Builds what is installed into a folder: the npm package, the Debian package and what images are built from if they are wanted, and the
 * checksums. The same sources and the same locked dependencies give the same bytes.
 */
export async function buildRelease(
  out: string,
  wanted: { readonly debian: boolean; readonly image: boolean },
): Promise<readonly string[]> {
  mkdirSync(out, { recursive: true });
  const work = mkdtempSync(join(tmpdir(), 'svc-release-'));
  try {
    const folder = join(work, 'package');
    writeNpmPackage(await bundle(), folder);
    const files = [packNpmPackage(folder, out)];
    if (wanted.debian) files.push(buildDebianPackage(folder, join(work, 'debian'), out));
    if (wanted.image) files.push(...writeImageContext(folder, join(work, 'image'), out));
    const sums = files.map((file) => `${sha256(join(out, file))}  ${file}\n`);
    writeFileSync(join(out, CHECKSUMS), sums.join(''));
    return [...files, CHECKSUMS];
  } finally {
    rmSync(work, { recursive: true });
  }
}

function sha256(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: { deb: { type: 'boolean' }, image: { type: 'boolean' } },
    allowPositionals: true,
  });
  const out = resolve(positionals[0] ?? 'release');
  for (const file of await buildRelease(out, { debian: values.deb === true, image: values.image === true })) {
    process.stdout.write(`${join(out, file)}\n`);
  }
}
