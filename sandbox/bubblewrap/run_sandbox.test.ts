import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { startSandbox } from './run_sandbox.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-run-sandbox-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it('an abandoned sandbox ends with the processes that bubblewrap started and that do not see its death', async () => {
  const [bwrap, mark] = [join(folder, 'bwrap'), join(folder, 'started')];
  writeFileSync(bwrap, `#!/bin/sh\ncat <&3 >/dev/null &\ntouch ${mark}\nwait\n`, { mode: 0o700 });
  const plan = { args: [], shown: [], mounted: [], covered: [], gitConfig: null, placeholders: [], warnings: [] };
  const rest = { filter: Buffer.alloc(0), command: 'true', args: [], gitConfig: Promise.resolve('') };
  const sandbox = startSandbox({ bwrap, plan, ...rest });
  await vi.waitFor(() => expect(existsSync(mark)).toBe(true), { timeout: 60_000 });
  await sandbox.abandon();
  // The last process that holds its end of the status has ended.
  expect(await sandbox.isReady).toBe(false);
});
