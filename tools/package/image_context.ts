import { copyFileSync, cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './build_package.ts';
import { copyModules, readRootManifest } from './npm_package.ts';
import { packArchive } from './pack_archive.ts';
import { writeReleaseFile } from './release_file.ts';
import { settleFiles } from './settle_files.ts';

const COMPOSE = 'compose.yaml';
/** For glibc and musl. Which one fits is known only where the image runs. */
export const IMAGE_NATIVE: readonly string[] = ['@libsql/linux-x64-gnu', '@libsql/linux-x64-musl'];

/** Writes the archive that `docker build` reads, and the compose file beside it; gives their names. */
export function writeImageContext(
  npmFolder: string,
  work: string,
  out: string,
  signer: string | null,
): readonly string[] {
  const source = join(ROOT, 'tools/package/image');
  cpSync(npmFolder, join(work, 'svc'), { recursive: true });
  copyModules(IMAGE_NATIVE, join(work, 'svc'));
  writeReleaseFile(join(work, 'svc'), 'image', signer);
  mkdirSync(join(work, 'state'));
  copyFileSync(join(source, 'Dockerfile'), join(work, 'Dockerfile'));
  settleFiles(work);
  const archive = `svc-${readRootManifest().version}-image.tar.gz`;
  packArchive(work, out, archive);
  copyFileSync(join(source, COMPOSE), join(out, COMPOSE));
  return [archive, COMPOSE];
}
