import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

const ROOTS = ['shared', 'machine', 'sandbox', 'gateway', 'sidecar', 'cli', 'worker', 'catalog', 'bench', 'tools'];
/** What a reader can still search by eye. Tests stand beside their files and do not count. */
const MOST_FILES = 40;

test(`no folder has more than ${MOST_FILES} code files: a larger one holds several subjects`, () => {
  const counts = new Map<string, number>();
  for (const root of ROOTS) {
    for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
      if (!/\.(?:ts|js|mjs)$/.test(name) || name.endsWith('.test.ts')) continue;
      const folder = dirname(join(root, name));
      counts.set(folder, (counts.get(folder) ?? 0) + 1);
    }
  }
  expect(counts.size).toBeGreaterThan(100);
  expect([...counts].filter(([, files]) => files > MOST_FILES)).toEqual([]);
});
