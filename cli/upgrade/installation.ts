import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { z } from 'zod';
import { errorCode } from '../../shared/model/error_code.ts';
import { CliError, EXIT } from '../exit_codes.ts';

/** How svc came to this machine. */
export type InstallWay = 'checkout' | 'npm' | 'homebrew' | 'archive' | 'debian' | 'image';

export interface Installation {
  readonly way: InstallWay;
  readonly root: string;
  /** The `--prefix` of npm or of the install script; null where there is none. */
  readonly prefix: string | null;
  /** The public key that signs releases, from the release that is installed; null if that one was built without a key. */
  readonly signer: string | null;
}

/** Written by tools/package/release_file.ts into every package. */
const releaseFile = z.object({ way: z.enum(['npm', 'archive', 'debian', 'image']), signer: z.string().nullable() });

/** Reads how svc was installed in this folder. */
export function readInstallation(root: string): Installation {
  if (existsSync(join(root, 'cli', 'main.ts'))) return { way: 'checkout', root, prefix: null, signer: null };
  const { way, signer } = readReleaseFile(join(root, 'release.json'));
  if (way === 'npm') {
    const isBrewed = root.includes(`${sep}Cellar${sep}`);
    return { way: isBrewed ? 'homebrew' : 'npm', root, prefix: isBrewed ? null : npmPrefix(root), signer };
  }
  return { way, root, prefix: way === 'archive' ? prefixAbove(root, 'lib') : null, signer };
}

function readReleaseFile(file: string): z.output<typeof releaseFile> {
  try {
    return releaseFile.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    // A package that was bundled without a release, as for tests.
    if (errorCode(error) === 'ENOENT') return { way: 'npm', signer: null };
    throw new CliError(
      EXIT.failed,
      `${file} cannot be read, so svc does not know how it was installed: install it again`,
    );
  }
}

/** `PREFIX/lib/node_modules/svc`. */
function npmPrefix(root: string): string | null {
  const modules = dirname(root);
  return modules.endsWith(`${sep}node_modules`) ? prefixAbove(modules, 'lib') : null;
}

/** `PREFIX`, if the folder is `PREFIX/NAME/...`. */
function prefixAbove(folder: string, name: string): string | null {
  const above = dirname(folder);
  return above.endsWith(`${sep}${name}`) ? dirname(above) : null;
}
