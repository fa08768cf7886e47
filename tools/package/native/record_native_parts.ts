import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lockedParts } from './locked_parts.ts';

// Records the hash of each native part of the libSQL client, of which npm installs only that of this machine. Run it after a change
// of libsql in the lock file: node tools/package/native/record_native_parts.ts
// What it fetches has to have the lock file's hash.

const FILE = join(import.meta.dirname, 'native_parts.json');

function sha256Of({ name, version, integrity }: ReturnType<typeof lockedParts>[number], folder: string): string {
  const packed = execFileSync('npm', ['pack', '--silent', '--ignore-scripts', `${name}@${version}`], {
    cwd: folder,
    encoding: 'utf8',
  });
  const archive = readFileSync(join(folder, packed.trim()));
  const found = `sha512-${createHash('sha512').update(archive).digest('base64')}`;
  if (found !== integrity) throw new Error(`${name}@${version} has the hash ${found}, expected ${integrity}`);
  const file = execFileSync('tar', ['-xzO', 'package/index.node'], { input: archive, maxBuffer: 64 * 1024 * 1024 });
  return createHash('sha256').update(file).digest('hex');
}

const folder = mkdtempSync(join(tmpdir(), 'svc-native-parts-'));
try {
  const recorded = lockedParts().map((part) => {
    const { name, version, integrity } = part;
    return [name, { version, integrity, sha256: sha256Of(part, folder) }];
  });
  writeFileSync(FILE, `${JSON.stringify(Object.fromEntries(recorded), null, 2)}\n`);
} finally {
  rmSync(folder, { recursive: true });
}
