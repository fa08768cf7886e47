import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { ASSET_FILES } from '../pages/frame/asset_files.ts';
import { Assets, type Encoders } from '../pages/frame/assets.ts';

/** The best compression, because each file is compressed once. */
const ENCODERS: Encoders = new Map([
  ['br', async (text: string) => Uint8Array.from(await promisify(brotliCompress)(text))],
  [
    'gzip',
    async (text: string) => Uint8Array.from(await promisify(gzip)(text, { level: constants.Z_BEST_COMPRESSION })),
  ],
]);

/** The assets, read from the checkout once at the start. */
export function fileAssets(): Assets {
  const sources = ASSET_FILES.map(({ name, file }) => ({
    name,
    text: readFileSync(new URL(`../${file}`, import.meta.url), 'utf8'),
  }));
  return new Assets(sources, (text) => createHash('sha256').update(text).digest('hex'), ENCODERS);
}
