import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Says in a package how it is installed, and with which key its releases are signed: `svc upgrade` reads it. */
export function writeReleaseFile(
  folder: string,
  way: 'npm' | 'archive' | 'debian' | 'image',
  signer: string | null,
): void {
  writeFileSync(join(folder, 'release.json'), `${JSON.stringify({ way, signer })}\n`);
}
