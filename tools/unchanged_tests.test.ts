import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
// @ts-expect-error plain JavaScript without declarations, like test.mjs
import { findNamed, keyTests, PassedTests } from './unchanged_tests.mjs';

const files = new Map([
  ['shared/model/a.test.ts', "import { a } from './a.ts';"],
  ['shared/model/a.ts', "import { deep } from '../net/deep.ts';\nimport type { T } from './typed.ts';"],
  ['shared/net/deep.ts', ''],
  ['shared/model/typed.ts', ''],
  ['cli/b.test.ts', "const { b } = await import('./b.ts');"],
  ['cli/b.ts', "const PROGRAMS = ['sidecar/main'];"],
  ['sidecar/main.ts', ''],
  ['tools/c.test.ts', ''],
  ['sandbox/image/program.ts', ''],
  ['catalog/connector.yaml', ''],
  ['package-lock.json', ''],
  ['docs/specification.md', ''],
  ['docs/images/soak_memory.svg', ''],
]);

/** The test files whose keys change with the content of this file. */
function testsOf(changed: string): readonly string[] {
  const before: Map<string, string> = keyTests(files, 'v24');
  const after: Map<string, string> = keyTests(new Map([...files, [changed, 'changed']]), 'v24');
  return [...before.keys()].filter((file) => before.get(file) !== after.get(file));
}

const ALL = ['cli/b.test.ts', 'shared/model/a.test.ts', 'tools/c.test.ts'];

test.each([
  ['the test file itself', 'shared/model/a.test.ts', ['shared/model/a.test.ts', 'tools/c.test.ts']],
  ['what it imports', 'shared/model/a.ts', ['shared/model/a.test.ts', 'tools/c.test.ts']],
  ['what that imports', 'shared/net/deep.ts', ['shared/model/a.test.ts', 'tools/c.test.ts']],
  ['what is imported when it is called', 'cli/b.ts', ['cli/b.test.ts', 'tools/c.test.ts']],
  ['a program that is named without its extension', 'sidecar/main.ts', ['cli/b.test.ts', 'tools/c.test.ts']],
  ['code of which only types are imported', 'shared/model/typed.ts', ['tools/c.test.ts']],
  ['a file that is no code', 'catalog/connector.yaml', ALL],
  ['the locked packages', 'package-lock.json', ALL],
  ['the programs of an image', 'sandbox/image/program.ts', ALL],
  ['documentation, for the tests that read everything', 'docs/specification.md', ['tools/c.test.ts']],
  ['a picture of it', 'docs/images/soak_memory.svg', ['tools/c.test.ts']],
])('a test file is run again after a change of %s', (_what, changed, again) => {
  expect(testsOf(changed)).toEqual(again);
});

test('every test file is run again with another Node', () => {
  const before: Map<string, string> = keyTests(files, 'v24');
  const after: Map<string, string> = keyTests(files, 'v25');
  expect([...before].filter(([file, key]) => after.get(file) === key)).toEqual([]);
});

test('a file is named relative to the one that names it, or to the project', () => {
  const named = findNamed('cli/b.ts', "'../shared/model/a.ts' 'sidecar/main.ts' 'main' './none.ts'", files);
  expect(named).toEqual(['shared/model/a.ts', 'sidecar/main.ts']);
});

test('what failed is run again, and what was not run stays as it was', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-passed-'));
  try {
    const keys = new Map(['kept', 'failed', 'passed', 'changed'].map((name) => [name, `${name} now`]));
    const file = join(folder, 'cache', 'passed.json');
    const first = new PassedTests(file);
    const before = new Map([...keys, ['changed', 'another key'], ['removed', 'x']]);
    first.keep(before, new Set(before.keys()), new Set(['kept', 'failed', 'changed', 'removed']));
    new PassedTests(file).keep(keys, new Set(['failed', 'passed']), new Set(['passed']));
    const now = new PassedTests(file);
    expect(Array.from(keys).filter(([name, key]) => now.has(name, key))).toEqual([
      ['kept', 'kept now'],
      ['passed', 'passed now'],
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
