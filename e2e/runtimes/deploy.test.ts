import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ASSET_FILES } from '../../worker/pages/frame/asset_files.ts';
import { ROOT } from './programs.ts';

const run = promisify(execFile);
const BIN = join(ROOT, 'node_modules/.bin');
const MAX_BUNDLE_BYTES = 1024 * 1024;

let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-deploy-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

test("the worker's bundle for workerd, as wrangler deploys it, is under 1 MiB compressed", async () => {
  const { PATH } = process.env;
  const env = { PATH: `${BIN}:${PATH}`, CI: '1', WRANGLER_SEND_METRICS: 'false', XDG_CONFIG_HOME: directory };
  const bundle = join(directory, 'bundle');
  await run(join(BIN, 'wrangler'), ['deploy', '--dry-run', '--outdir', bundle], { cwd: ROOT, env });
  const modules = (await readdir(bundle)).filter((name) => !/\.(map|md)$/.test(name));
  // Besides the code, the pages' files and the catalog, as text.
  expect(modules.filter((name) => !/-[a-z0-9_-]+\.(?:js|mjs|css|svg|yaml)$/.test(name))).toEqual(['workerd.js']);
  const folders = ['bindings', 'connectors', 'services'];
  const catalog = (await Promise.all(folders.map((folder) => readdir(join(ROOT, 'catalog', folder))))).flat();
  expect(modules).toHaveLength(1 + ASSET_FILES.length + catalog.length);
  const texts = await Promise.all(modules.map((name) => readFile(join(bundle, name))));
  expect(texts.reduce((sum, text) => sum + gzipSync(text).length, 0)).toBeLessThan(MAX_BUNDLE_BYTES);
});

test("the worker type-checks with Deno's own types", async () => {
  const { PATH } = process.env;
  const env = { PATH, HOME: directory, DENO_NO_UPDATE_CHECK: '1', NO_COLOR: '1' };
  const check = run(join(BIN, 'deno'), ['check', '--no-remote', 'worker/entries/node.ts'], { cwd: ROOT, env });
  expect(await check.then(() => '').catch((error: Error) => error.message)).toBe('');
});
