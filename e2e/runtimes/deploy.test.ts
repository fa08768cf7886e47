import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ASSET_FILES } from '../../worker/pages/frame/asset_files.ts';
import { ONLY_FULL } from '../support/full_counts.ts';
import { ROOT } from './programs.ts';

const run = promisify(execFile);
const BIN = join(ROOT, 'node_modules/.bin');
const MAX_BUNDLE_BYTES = 1024 * 1024;
const MAX_TYPES_BYTES = 8 * 1024 * 1024;

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

/** Deno's own check does the same with the same types, in several times the time. */
test.each(ONLY_FULL)("the worker type-checks with Deno's own types%s", async () => {
  expect(
    await findTypeErrors([join(ROOT, 'worker/entries/node.ts'), join(ROOT, 'worker/sign_in/saml/xmldom.d.ts')]),
  ).toBe('');
  const wrong = join(directory, 'wrong.ts');
  await writeFile(wrong, 'export const made = Deno.noSuchFunction();\n');
  expect(await findTypeErrors([wrong])).toContain("Property 'noSuchFunction' does not exist");
});

/** What the compiler says of these files with Deno's types; empty if they are right. */
async function findTypeErrors(files: readonly string[]): Promise<string> {
  const types = join(directory, 'deno.d.ts');
  const env = { PATH: process.env['PATH'], HOME: directory, DENO_NO_UPDATE_CHECK: '1', NO_COLOR: '1' };
  await writeFile(types, (await run(join(BIN, 'deno'), ['types'], { env, maxBuffer: MAX_TYPES_BYTES })).stdout);
  const settings = {
    extends: join(ROOT, 'tsconfig.json'),
    // Deno's own types have an enum.
    compilerOptions: { lib: ['ESNext'], typeRoots: [join(ROOT, 'node_modules/@types')], erasableSyntaxOnly: false },
    files: [types, ...files],
    include: [],
  };
  await writeFile(join(directory, 'tsconfig.json'), JSON.stringify(settings));
  const compiler = join(ROOT, 'node_modules/typescript-native/bin/tsc');
  const check = run(process.execPath, [compiler, '-p', directory], { cwd: ROOT });
  return check.then(() => '').catch(({ stdout, message }: Error & { stdout?: string }) => stdout || message);
}
