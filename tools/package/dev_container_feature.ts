import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './build_package.ts';
import { INSTALL_SCRIPT } from './install_script.ts';
import { packArchive } from './pack_archive.ts';
import { settleFiles } from './settle_files.ts';

/** Packs the dev container feature: its two files, and the install script of the release, which must be in `out`. */
export function packDevContainerFeature(version: string, work: string, out: string): string {
  const source = join(ROOT, 'tools/package/feature');
  mkdirSync(work, { recursive: true });
  const manifest = readFileSync(join(source, 'devcontainer-feature.json'), 'utf8');
  writeFileSync(join(work, 'devcontainer-feature.json'), manifest.replaceAll('@VERSION@', version));
  copyFileSync(join(source, 'install.sh'), join(work, 'install.sh'));
  copyFileSync(join(out, INSTALL_SCRIPT), join(work, 'install_svc.sh'));
  settleFiles(work);
  return packArchive(work, out, 'svc-dev-container-feature.tar.gz');
}
