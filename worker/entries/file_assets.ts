import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { ASSET_FILES, type AssetFile } from '../pages/asset_files.ts';
import { Assets } from '../pages/assets.ts';

/** The assets, read from the checkout and its packages: once, when the program starts. */
export function fileAssets(): Assets {
  const sources = ASSET_FILES.map((asset) => {
    const { name, specifier } = asset;
    return { name, specifier, text: readFileSync(pathOf(asset), 'utf8') };
  });
  return new Assets(sources, (text) => createHash('sha256').update(text).digest('hex'));
}

function pathOf({ from }: AssetFile): string {
  if ('package' in from) return createRequire(import.meta.url).resolve(from.package);
  return fileURLToPath(new URL(`../pages/${from.file}`, import.meta.url));
}
