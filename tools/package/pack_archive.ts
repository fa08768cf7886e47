import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { SOURCE_DATE } from './settle_files.ts';

/** Packs a folder whose files are settled, in an order and with owners and times that do not depend on the machine. */
export function packArchive(folder: string, out: string, name: string): string {
  const settled = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', `--mtime=@${SOURCE_DATE}`];
  execFileSync('tar', [...settled, '--use-compress-program=gzip -n -6', '-cf', join(out, name), '-C', folder, '.']);
  return name;
}
