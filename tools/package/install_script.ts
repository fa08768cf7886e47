import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './build_package.ts';

export const INSTALL_SCRIPT = 'install.sh';

/** Writes the install script of a version, which takes only what this public key has signed. */
export function writeInstallScript(version: string, signer: string, out: string): string {
  const template = readFileSync(join(ROOT, 'tools/package/install', INSTALL_SCRIPT), 'utf8');
  writeFileSync(join(out, INSTALL_SCRIPT), template.replaceAll('@VERSION@', version).replaceAll('@SIGNER@', signer));
  return INSTALL_SCRIPT;
}
