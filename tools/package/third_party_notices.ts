import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const manifest = z.object({ name: z.string(), version: z.string(), license: z.string().optional() });

const LICENCE_FILE = /^(licen[cs]e|copying|notice)/i;
/** The package of a module's path: the last one, if packages are nested. */
const PACKAGE = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//;

/** The folders of the packages that these modules are part of. */
export function packagesOf(moduleIds: readonly string[]): readonly string[] {
  const folders = moduleIds.flatMap((id) => PACKAGE.exec(id)?.[1] ?? []);
  return [...new Set(folders)].toSorted();
}

/** The names, versions and licence texts of packages, as what contains their code has to carry them along. */
export function thirdPartyNotices(folders: readonly string[]): string {
  const notices = folders.map((folder) => {
    const { name, version, license } = manifest.parse(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')));
    const files = readdirSync(folder).filter((file) => LICENCE_FILE.test(file) && !/\.[cm]?[jt]s$/.test(file));
    const texts = files.toSorted().map((file) => readFileSync(join(folder, file), 'utf8').trim());
    return [`${name} ${version} (${license ?? 'see below'})`, ...texts].join('\n\n');
  });
  return `svc contains code of these packages.\n\n${notices.join(`\n\n${'-'.repeat(78)}\n\n`)}\n`;
}
