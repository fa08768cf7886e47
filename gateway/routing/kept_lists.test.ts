import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { localServer } from '../../shared/mcp/testing/servers.ts';
import { KeptLists } from './kept_lists.ts';

const server = localServer();
const TOOLS = [{ name: 'read', inputSchema: { type: 'object' as const }, _meta: { own: 1 } }];
let home: string;
let path: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-lists-'));
  path = join(home, 'servers', server.id, 'tools.json');
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

describe('the lists of the last run', () => {
  test('are kept for the same configuration, and marked', async () => {
    await new KeptLists(home).write('tools', server, '', TOOLS);
    const kept = new KeptLists(home).read('tools', server, '');
    expect(kept).toEqual([{ ...TOOLS[0], _meta: { own: 1, 'svc/starting': true } }]);
    expect(new KeptLists(home).read('prompts', server, '')).toBeNull();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(join(home, 'servers', server.id)).mode & 0o777).toBe(0o700);
  });

  test.each([
    ['command', { command: ['/usr/bin/other'] }],
    ['variables', { env: { A: 'b' } }],
    ['isolation', { isolation: 'container' as const }],
    ['URL', { mode: 'remote' as const, command: [], url: 'https://mcp.example.test/' }],
    ['header', { headers: { 'x-workspace': 'other' } }],
    ['server', { id: `mcp_${'0'.repeat(25)}2` }],
  ])('are not used for another %s', async (_, more) => {
    const lists = new KeptLists(home);
    await lists.write('tools', server, '', TOOLS);
    expect(lists.read('tools', localServer(more), '')).toBeNull();
  });

  test('are not used once another credential is stored: another account has other tools', async () => {
    const lists = new KeptLists(home);
    await lists.write('tools', server, 'a', TOOLS);
    expect([lists.read('tools', server, 'b'), lists.read('tools', server, 'a')?.length]).toEqual([null, 1]);
  });

  test.each<readonly [string, () => void]>([
    ['cut short', () => truncateSync(path, 40)],
    ['changed', () => writeFileSync(path, readFileSync(path, 'utf8').replace('"read"', '"evil"'))],
    ['gone', () => rmSync(path)],
  ])('are not used if the file is %s', async (_, damage) => {
    await new KeptLists(home).write('tools', server, '', TOOLS);
    damage();
    expect(new KeptLists(home).read('tools', server, '')).toBeNull();
  });

  test('follow the server, and are not kept if they are huge', async () => {
    const lists = new KeptLists(home);
    await lists.write('tools', server, '', TOOLS);
    await lists.write('tools', server, '', []);
    expect(lists.read('tools', server, '')).toEqual([]);
    await lists.write('tools', server, '', [{ ...TOOLS[0]!, description: 'x'.repeat(5_000_000) }]);
    expect(lists.read('tools', server, '')).toEqual([]);
  });
});
