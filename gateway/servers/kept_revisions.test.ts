import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { localServer } from '../../shared/mcp/testing/servers.ts';
import { KeptRevisions } from './kept_revisions.ts';

const server = localServer();
const DAY_MS = 24 * 3_600_000;
let home: string;
let now: number;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-revisions-'));
  now = 1_000;
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const keptIn = () => new KeptRevisions(home, () => now);

test('an earlier revision is known in the next run, for a week and for the same configuration', async () => {
  expect(keptIn().isLegacy(server)).toBe(false);
  await keptIn().keepLegacy(server, false);
  expect([keptIn().isLegacy(server), keptIn().isLegacy(localServer({ command: ['other'] }))]).toEqual([true, false]);
  now += 7 * DAY_MS;
  expect(keptIn().isLegacy(server)).toBe(false);
});

test('an earlier revision that is only assumed is known for an hour', async () => {
  await keptIn().keepLegacy(server, true);
  now += DAY_MS / 24 - 1;
  expect(keptIn().isLegacy(server)).toBe(true);
  now += 1;
  expect(keptIn().isLegacy(server)).toBe(false);
});

test('a clock that was set back, and a damaged file, only mean that the server is asked', async () => {
  now += 8 * DAY_MS;
  await keptIn().keepLegacy(server, false);
  now = 1_000;
  expect(keptIn().isLegacy(server)).toBe(false);
  writeFileSync(join(home, 'servers', server.id, 'revision.json'), '{"version":1', { mode: 0o600 });
  expect(keptIn().isLegacy(server)).toBe(false);
});
