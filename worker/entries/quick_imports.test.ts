import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const QUICK_IMPORTS = new URL('quick_imports.ts', import.meta.url).href;
const MODULES = ['drizzle-orm', 'drizzle-orm/sqlite-core', 'drizzle-orm/libsql', 'drizzle-orm/libsql/session'];
/** Lists what each module exports, and whether two of them share their classes. */
const PROGRAM = `
  const modules = await Promise.all(${JSON.stringify(MODULES)}.map((name) => import(name)));
  const shared = modules[1].SQLiteTable.prototype instanceof modules[0].Table;
  console.log(JSON.stringify([shared, ...modules.map((each) => Object.keys(each))]));
`;

async function runProgram(...flags: readonly string[]): Promise<unknown> {
  const args = [...flags, '--input-type=module', '--eval', PROGRAM];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: new URL('../..', import.meta.url) });
  return JSON.parse(stdout);
}

it('finds the same modules as Node itself', async () => {
  const found = await runProgram('--import', QUICK_IMPORTS);
  expect(found).toEqual(expect.arrayContaining([true]));
  expect(found).toEqual(await runProgram());
});
