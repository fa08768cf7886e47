import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { SETTINGS } from '../../shared/model/settings.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PROGRAMS = ['cli', 'gateway', 'machine', 'sandbox', 'shared', 'sidecar', 'worker'];

/** Names that no person sets for svc: a launch gives them to what runs in it, or they only begin like a setting. */
const NO_SETTINGS = [
  'SVC_AGENT_HOME',
  'SVC_OAUTH',
  'SVC_SANDBOX_PROXY_BOOTSTRAP',
  'SVC_SESSION_ID',
  'SVC_TEST_INSTALL',
  'SVC_TOKEN',
  'SVC_URL',
];

/** The names that a program can look up: as a string of their own, or taken out of an object by `{ SVC_NAME } =`. */
function namesIn(source: string): string[] {
  const quoted = [...source.matchAll(/['"](SVC_[A-Z_]+)['"]/g)].map(([, name = '']) => name);
  const members = [...source.matchAll(/\b(?:env|environment|bindings)\??\.(SVC_[A-Z_]+)/g)].map(
    ([, name = '']) => name,
  );
  const patterns = [...source.matchAll(/\{([^{}]*)\}\s*=\s/g)].flatMap(([, inside = '']) => [
    ...inside.matchAll(/\bSVC_[A-Z_]+/g),
  ]);
  return [...quoted, ...members, ...patterns.map(([name]) => name)];
}

function sourceFiles(): string[] {
  return PROGRAMS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.tsx?$/.test(file) && !/(?:^|\/)node_modules\/|\.test\.tsx?$/.test(file))
      .map((file) => join(ROOT, folder, file)),
  );
}

test('every SVC_ variable that a program reads is in the table of settings', () => {
  const read = new Set(sourceFiles().flatMap((file) => namesIn(readFileSync(file, 'utf8'))));
  const known = new Set([...SETTINGS.map(({ name }) => name), ...NO_SETTINGS]);
  expect([...read].filter((name) => !known.has(name))).toEqual([]);
  expect(NO_SETTINGS.filter((name) => !read.has(name))).toEqual([]);
  expect(read).toContain('SVC_LOCAL');
});

test('a name is found however it is read', () => {
  expect(namesIn(`const { SVC_ONE, SVC_TWO: two = '' } = textBindings(bindings);`)).toEqual(['SVC_ONE', 'SVC_TWO']);
  expect(namesIn(`process.env['SVC_THREE'] ?? env.SVC_FOUR`)).toEqual(['SVC_THREE', 'SVC_FOUR']);
  expect(namesIn('/** The directory `$SVC_HOME/mcp`. */')).toEqual([]);
});
