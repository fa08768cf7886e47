import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './build_package.ts';
import { copyModules, readRootManifest } from './npm_package.ts';
import { settleFiles, SOURCE_DATE } from './settle_files.ts';

const COMPOSE = 'compose.yaml';

/** Writes the archive that `docker build` reads, and the compose file beside it; gives their names. */
export function writeImageContext(npmFolder: string, work: string, out: string): readonly string[] {
  const source = join(ROOT, 'tools/package/image');
  cpSync(npmFolder, join(work, 'svc'), { recursive: true });
  // Which one fits is known only where the image runs.
  copyModules(['@libsql/linux-x64-gnu', '@libsql/linux-x64-musl'], join(work, 'svc'));
  mkdirSync(join(work, 'state'));
  copyFileSync(join(source, 'Dockerfile'), join(work, 'Dockerfile'));
  settleFiles(work);
  const archive = `svc-${readRootManifest().version}-image.tar.gz`;
  const settled = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', `--mtime=@${SOURCE_DATE}`];
  execFileSync('tar', [...settled, '--use-compress-program=gzip -n -6', '-cf', join(out, archive), '-C', work, '.']);
  copyFileSync(join(source, COMPOSE), join(out, COMPOSE));
  return [archive, COMPOSE];
}
