import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const START = fileURLToPath(new URL('start.mjs', import.meta.url));
/** Prints which parts of Node a process has loaded. */
const LISTED = 'data:text/javascript,process.on("exit",()=>console.log(process.moduleLoadList.join(" ")))';

const startSvc = (...args: string[]) =>
  spawnSync(process.execPath, ['--import', LISTED, START, ...args], { encoding: 'utf8', env: {} });

test('a command whose modules are in the compile cache does not load the compiler of TypeScript', () => {
  startSvc('--version');
  const { stdout, stderr, status } = startSvc('--version');
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  expect(stdout).toContain('NativeModule fs');
  expect(stdout).not.toContain('amaro');
});
