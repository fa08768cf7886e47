import { readdirSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { fileAssets } from '../../entries/file_assets.ts';
import { ASSET_FILES } from './asset_files.ts';
import { Assets, type AssetSource } from './assets.ts';

const source = (name: string, text: string): AssetSource => ({ name, text });
/** Hexadecimal like a hash, and as long as the text. */
const hash = (text: string) => text.length.toString(16).padStart(16, '0');

describe('assets', () => {
  test('have URLs that contain a hash of their content', () => {
    const before = new Assets([source('a.css', 'x{}')], hash).urlOf('a.css');
    const after = new Assets([source('a.css', 'xy{}')], hash).urlOf('a.css');
    expect(before).toMatch(/^\/assets\/a\.[0-9a-f]{16}\.css$/);
    expect(after).not.toBe(before);
  });

  test('import each other by these URLs, in any notation, and change with their imports', () => {
    const texts = [
      `import{a}from"./a.js";`,
      `const a = () => import('./a.js');`,
      `import b from "./b.js"; export * from './a.js';`,
    ];
    for (const text of texts) {
      const make = (a: string) => {
        const all = [source('main.js', text), source('a.js', a), source('b.js', 'export {}')];
        return new Assets(all, hash);
      };
      const assets = make('1');
      expect(assets.findAsset(assets.urlOf('main.js'))?.text).toContain(assets.urlOf('a.js'));
      expect(assets.findAsset(assets.urlOf('main.js'))?.text).not.toMatch(/['"]\.\/[ab]\.js['"]/);
    }
  });

  test('are refused if one imports an unknown file', () => {
    expect(() => new Assets([source('main.js', `import './b.js'; import { b } from './b.js';`)], hash)).toThrow(
      './b.js',
    );
  });

  test('include all islands', () => {
    const islands = readdirSync(new URL('../../islands', import.meta.url)).filter((name) => name.endsWith('.js'));
    const listed = ASSET_FILES.flatMap(({ name }) => (name.endsWith('.js') ? [name] : []));
    expect(listed.toSorted()).toEqual(islands.toSorted());
    const workerd = readFileSync(new URL('../../entries/workerd_assets.ts', import.meta.url), 'utf8');
    for (const { name } of ASSET_FILES) expect(workerd).toContain(`'${name}':`);
  });

  test('stay within what a page may weigh, compressed: 25 KB of script and 15 KB of style', () => {
    const assets = fileAssets().listAll();
    // The service worker is no script of a page.
    const ofPages = assets.filter(({ url }) => !url.includes('/push_worker.'));
    const weight = (ending: string) =>
      ofPages.filter(({ url }) => url.endsWith(ending)).reduce((sum, { text }) => sum + gzipSync(text).length, 0);
    expect(weight('.js')).toBeLessThan(25_000);
    expect(weight('.css')).toBeLessThan(15_000);
  });

  test('run nothing that a text could become: no eval, no markup from text', () => {
    for (const { text } of fileAssets().listAll()) {
      expect(text).not.toMatch(
        /\b(innerHTML|outerHTML|insertAdjacentHTML|eval|Function\(|document\.write|parseFromString)/,
      );
    }
  });
});
