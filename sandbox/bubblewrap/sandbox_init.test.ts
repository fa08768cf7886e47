import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { freePort } from '../../e2e/support/free_port.ts';
import { identifyFile } from './file_identity.ts';

const INIT = fileURLToPath(new URL('sandbox_init.cjs', import.meta.url));
/** A mount point of every Linux. */
const MOUNTED = '/proc';

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-sandbox-init-')));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the first program of a sandbox without one, with a command that says that it ran. */
async function start(
  expected: readonly (readonly [string, string | null])[],
): Promise<{ code: unknown; said: string }> {
  const port = String(await freePort());
  const args = [INIT, port, join(folder, 'proxy.sock'), folder, '/bin/echo', 'ran'];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr, child.stdio[4]]) {
    stream?.on('data', (some: unknown) => {
      said += String(some);
    });
  }
  const orders = child.stdio[3];
  if (orders === null || orders === undefined || !('write' in orders)) throw new Error('no orders');
  orders.on('error', () => undefined);
  orders.write(`${JSON.stringify(expected)}\n{"PATH":"/usr/bin:/bin"}\n`);
  const code = await new Promise<unknown>((resolve) => child.once('close', resolve));
  return { code, said };
}

function link(target: string): readonly [string, string | null] {
  const path = join(folder, 'link');
  symlinkSync(target, path);
  return [path, identifyFile(target)];
}

describe.runIf(process.platform === 'linux')('the first program of a sandbox', () => {
  it('runs the command if each path is what was planned, and a mount point', async () => {
    const { code, said } = await start([[MOUNTED, identifyFile(MOUNTED)]]);
    expect([code, said.includes('runs\n'), said.includes('ran\n')]).toEqual([0, true, true]);
  });

  it.each([
    ['another folder is mounted', () => [MOUNTED, '1:1'] as const],
    ['it was a link already before the start', () => [MOUNTED, null] as const],
    ['it is not mounted', () => [folder, identifyFile(folder)] as const],
    ['it is a link', () => link(MOUNTED)],
    ['nothing is there', () => [join(folder, 'none'), '1:1'] as const],
  ])('does not run the command if %s', async (_what, expected) => {
    const [path, identity] = expected();
    const message = `svc run: ${JSON.stringify(path)} was changed while the sandbox was made. Start it again.\n`;
    expect(await start([[path, identity]])).toEqual({ code: 1, said: message });
  });
});

describe.runIf(process.platform === 'linux')('the identity of a file', () => {
  it('is that of what a path leads to without links', () => {
    mkdirSync(join(folder, 'real', 'below'), { recursive: true });
    symlinkSync('real', join(folder, 'link'));
    expect(identifyFile(join(folder, 'real', 'below'))).toMatch(/^\d+:\d+$/);
    expect(identifyFile(join(folder, 'link'))).toBeNull();
    expect(identifyFile(join(folder, 'link', 'below'))).toBeNull();
    expect(identifyFile(join(folder, 'none'))).toBeNull();
  });
});
