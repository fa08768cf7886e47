import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { ASSET_FILES, type AssetFile } from '../pages/frame/asset_files.ts';
import { Assets, type Encoders } from '../pages/frame/assets.ts';

/** As small as it gets, for each is compressed once. */
const ENCODERS: Encoders = new Map([
  ['br', async (text: string) => Uint8Array.from(await promisify(brotliCompress)(text))],
  [
    'gzip',
    async (text: string) => Uint8Array.from(await promisify(gzip)(text, { level: constants.Z_BEST_COMPRESSION })),
  ],
]);

/** The assets, read from the checkout and its packages: once, when the program starts. */
export function fileAssets(): Assets {
  const sources = ASSET_FILES.map((asset) => {
    const { name, specifier } = asset;
    return { name, specifier, text: readFileSync(pathOf(asset), 'utf8') };
  });
  return new Assets(sources, (text) => createHash('sha256').update(text).digest('hex'), ENCODERS);
}

function pathOf({ from }: AssetFile): string {
  if ('package' in from) return createRequire(import.meta.url).resolve(from.package);
  return fileURLToPath(new URL(`../pages/${from.file}`, import.meta.url));
}
