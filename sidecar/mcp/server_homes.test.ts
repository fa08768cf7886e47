import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { localServer } from '../../shared/mcp/testing/servers.ts';
import { ProcessRecords, serversInUse } from '../../machine/process_records.ts';
import { type ExistingServersOptions, findExistingServers, ServerHomes } from './server_homes.ts';

const idOf = (name: string) => `mcp_${name.padStart(26, '0')}`;
const [KEPT, GONE] = [idOf('1'), idOf('2')];

let mcpHome: string;
let elsewhere: string;
let existing: ReadonlySet<string> | null;
let inUse: ReadonlySet<string> | null;
let warnings: string[];
beforeEach(() => {
  mcpHome = mkdtempSync(join(tmpdir(), 'svc-homes-'));
  elsewhere = mkdtempSync(join(tmpdir(), 'svc-elsewhere-'));
  writeFileSync(join(elsewhere, 'precious'), 'x');
  [existing, inUse, warnings] = [new Set([KEPT]), new Set(), []];
});
afterEach(() => {
  rmSync(mcpHome, { recursive: true, force: true });
  rmSync(elsewhere, { recursive: true, force: true });
});

const warn = (message: string): void => void warnings.push(message);
const oldStatus = () => ({ version: 1, ageSeconds: 60 });
const nothing = (): null => null;
const pathOf = (id: string) => join(mcpHome, 'servers', id);
const left = () => readdirSync(join(mcpHome, 'servers')).toSorted();

function makeHome(id: string): string {
  const home = join(pathOf(id), 'home');
  mkdirSync(join(home, '.cache', 'deep'), { recursive: true });
  writeFileSync(join(home, '.cache', 'deep', 'file'), 'x');
  return home;
}

function homes(pause: (ms: number, signal: AbortSignal) => Promise<void> = () => Promise.resolve()): ServerHomes {
  return new ServerHomes({ mcpHome, findExisting: () => existing, findInUse: () => inUse, pause, warn });
}

describe('the directory of an MCP server', () => {
  test('is removed when the server is gone, and no other directory is', async () => {
    makeHome(KEPT);
    makeHome(GONE);
    mkdirSync(join(mcpHome, 'servers', 'not-a-server'));
    expect(await homes().sweep()).toBe(true);
    expect(left()).toEqual([KEPT, 'not-a-server'].toSorted());
    expect(existsSync(join(pathOf(KEPT), 'home', '.cache', 'deep', 'file'))).toBe(true);
  });

  test('stays while a process of the server runs, or while that is unknown', async () => {
    makeHome(GONE);
    for (inUse of [new Set([GONE]), null]) {
      expect(await homes().sweep()).toBe(false);
      expect(left()).toEqual([GONE]);
    }
  });

  test('stays while the list of servers is unknown', async () => {
    makeHome(GONE);
    existing = null;
    expect(await homes().sweep()).toBe(false);
    expect(left()).toEqual([GONE]);
  });

  test("is removed once the server's last process has ended", async () => {
    makeHome(GONE);
    inUse = new Set([GONE]);
    const swept = homes(() => {
      inUse = new Set();
      return Promise.resolve();
    });
    swept.notify();
    await vi.waitFor(() => expect(left()).toEqual([]), { timeout: 60_000 });
  });

  test('is removed with its read-only content', async () => {
    const home = makeHome(GONE);
    chmodSync(join(home, '.cache', 'deep'), 0o500);
    chmodSync(join(home, '.cache'), 0o000);
    await homes().sweep();
    expect(left()).toEqual([]);
  });

  test('is removed without following a link in it', async () => {
    const home = makeHome(GONE);
    symlinkSync(elsewhere, join(home, 'link'));
    symlinkSync(join(elsewhere, 'precious'), join(home, '.cache', 'link'));
    await homes().sweep();
    expect([left(), readdirSync(elsewhere)]).toEqual([[], ['precious']]);
  });

  test('is removed without its target if it is a link itself', async () => {
    mkdirSync(join(mcpHome, 'servers'));
    symlinkSync(elsewhere, pathOf(GONE));
    await homes().sweep();
    expect([left(), readdirSync(elsewhere)]).toEqual([[], ['precious']]);
  });

  test('is not looked for behind a link in place of the parent directory', async () => {
    mkdirSync(join(elsewhere, GONE));
    symlinkSync(elsewhere, join(mcpHome, 'servers'));
    expect(await homes().sweep()).toBe(true);
    expect(readdirSync(elsewhere).toSorted()).toEqual([GONE, 'precious']);
  });

  test('may be absent', async () => {
    expect(await homes().sweep()).toBe(true);
    expect(warnings).toEqual([]);
  });
});

describe('the known servers', () => {
  const server = localServer({ id: KEPT });
  const policy = {
    current: () => ({ ok: true }),
    status: () => ({ version: 1, ageSeconds: 2 }),
    mcpServers: () => [{ server, authorization: null }],
    listUnreadableMcpServers: () => [{ id: GONE, message: 'x' }],
  };
  const findKnownServers = (more: object = {}, uptimeMs = 10_000) =>
    findExistingServers({
      policy: z.custom<ExistingServersOptions['policy']>().parse({ ...policy, ...more }),
      clock: { now: () => 1_000_000 + uptimeMs },
      startedAt: 1_000_000,
    });

  test('come from a policy that was confirmed while this program ran, and include unusable ones', () => {
    expect(findKnownServers()).toEqual(new Set([KEPT, GONE]));
  });

  test.each([
    ['a policy that an earlier run stored', { status: oldStatus }],
    ['no policy', { mcpServers: nothing, status: nothing }],
    ['the unusable policy of a revoked sidecar', { current: () => ({ ok: false }), mcpServers: () => [] }],
    [
      'a policy with a server that cannot even be named',
      { listUnreadableMcpServers: () => [{ id: null, message: 'x' }] },
    ],
  ])('are unknown from %s', (_, more) => {
    expect(findKnownServers(more)).toBeNull();
  });
});

describe('the running servers', () => {
  test('are known by server, while the process or its gateway runs', () => {
    expect(serversInUse(mcpHome)).toEqual(new Set());
    const records = new ProcessRecords(mcpHome, process.pid);
    records.add(process.pid, 'a'.repeat(24), GONE);
    expect(serversInUse(mcpHome)).toEqual(new Set([GONE]));
    records.remove(process.pid);
    expect(serversInUse(mcpHome)).toEqual(new Set());
  });

  test('are unknown from a record of an earlier version, or an incomplete one', () => {
    const records = new ProcessRecords(mcpHome, process.pid);
    const running = { pid: process.pid, started: null };
    const path = join(mcpHome, 'running', `${process.pid}.json`);
    for (const text of [JSON.stringify({ server: running, gateway: running, run_id: 'a'.repeat(24) }), '{"server":']) {
      writeFileSync(path, text);
      expect(serversInUse(mcpHome)).toBeNull();
    }
    expect(records.listAbandoned()).toEqual([]);
  });

  test('do not include what a dead gateway has recorded', () => {
    const dead = { pid: 2 ** 22 + 1, started: '1' };
    const directory = join(mcpHome, 'running');
    mkdirSync(directory);
    const record = { server: dead, gateway: dead, run_id: 'a'.repeat(24), server_id: GONE };
    writeFileSync(join(directory, `${dead.pid}.json`), JSON.stringify(record));
    expect(serversInUse(mcpHome)).toEqual(new Set());
  });
});
