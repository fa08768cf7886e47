/**
 * Removes each check of `mutations.ts` from a copy of the tree, one at a time, and runs the tests that should fail without it.
 * Run: `node tools/mutate.ts [--only TEXT] [--write]`. Exits 1 if no test failed for one; `--write` updates the rows of the
 * tried checks in the table of docs/invariants.md.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { argv, exit, stdout } from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { MUTATIONS } from './mutations.ts';
import type { Mutation } from './mutation.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DOCUMENT = join(ROOT, 'docs', 'invariants.md');
const TABLE_HEAD =
  '| Invariant or refusal | What holds | The check | Tests that fail without it |\n| --- | --- | --- | --- |\n';
const TIMEOUT_MS = 240_000;

const report = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      assertionResults: z.array(z.object({ status: z.string(), title: z.string() })),
    }),
  ),
});

/** A test file that failed, the number of its failed tests, and the first of them. */
interface Noticed {
  readonly file: string;
  readonly failed: number;
  readonly first: string;
}

/** Copies the tree, including uncommitted changes, to its own folder. */
function copyOfTree(): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-mutate-'));
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT });
  for (const file of listed.toString('utf8').split('\0')) {
    if (file !== '' && existsSync(join(ROOT, file))) cpSync(join(ROOT, file), join(folder, file));
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

const isEndToEnd = (test: string): boolean => test.startsWith('e2e/');

function runTests(tests: readonly string[], folder: string): Noticed[] {
  if (tests.length === 0) return [];
  const file = join(folder, 'report.json');
  rmSync(file, { force: true });
  const vitest = join(folder, 'node_modules', '.bin', 'vitest');
  const args = ['run', ...tests, '--reporter=json', `--outputFile=${file}`, '--testTimeout=8000'];
  spawnSync(vitest, args, { cwd: folder, stdio: 'ignore', timeout: TIMEOUT_MS });
  if (!existsSync(file)) return [{ file: tests.join(', '), failed: 1, first: 'does not come to an end' }];
  const { testResults } = report.parse(JSON.parse(readFileSync(file, 'utf8')));
  return testResults
    .filter(({ status }) => status !== 'passed')
    .map(({ name, assertionResults }) => {
      const failed = assertionResults.filter(({ status }) => status === 'failed');
      return { file: relative(folder, name), failed: failed.length, first: failed[0]?.title ?? 'does not start' };
    });
}

/** Removes the check, runs its tests (the end-to-end ones if no unit test fails), and restores it. Throws unless the file contains the text exactly once. */
function testWithout(mutation: Mutation, folder: string): Noticed[] {
  const path = join(folder, mutation.file);
  const source = readFileSync(path, 'utf8');
  if (source.split(mutation.text).length !== 2) {
    throw new Error(`mutations.ts: ${mutation.file} does not hold once: ${mutation.text}`);
  }
  try {
    writeFileSync(
      path,
      source.replace(mutation.text, () => mutation.replacement),
    );
    const unit = runTests(
      mutation.tests.filter((test) => !isEndToEnd(test)),
      folder,
    );
    return unit.length > 0 ? unit : runTests(mutation.tests.filter(isEndToEnd), folder);
  } finally {
    writeFileSync(path, source);
  }
}

function tableRow({ row, holds, file }: Mutation, noticed: readonly Noticed[]): string {
  const tests = noticed.map(({ file: test, failed, first }, index) => {
    const title = index === 0 ? `, such as “${first.replaceAll('|', '\\|')}”` : '';
    return `${test} (${failed})${title}`;
  });
  return `| ${row} | ${holds} | ${file} | ${tests.join('<br>')} |\n`;
}

/** The unique beginning of a row of the table. */
function keyOf({ row, holds }: Mutation): string {
  return `| ${row} | ${holds} |`;
}

/** Replaces the tried rows in the table at the end of the document; the others stay. */
function writeTable(tried: ReadonlyMap<string, string>): void {
  const document = readFileSync(DOCUMENT, 'utf8');
  const start = document.indexOf('| Invariant or refusal');
  const old = document.slice(start).split('\n');
  const rows = MUTATIONS.map((mutation) => {
    const key = keyOf(mutation);
    return tried.get(key) ?? old.filter((line) => line.startsWith(key)).map((line) => `${line}\n`)[0] ?? '';
  });
  writeFileSync(DOCUMENT, `${document.slice(0, start)}${TABLE_HEAD}${rows.join('')}`);
}

const { values } = parseArgs({
  args: argv.slice(2),
  options: { only: { type: 'string' }, write: { type: 'boolean' } },
});
const chosen = MUTATIONS.filter(({ row, holds, file }) => `${row} ${holds} ${file}`.includes(values.only ?? ''));
const folder = copyOfTree();
const rows = new Map<string, string>();
let survived = 0;
try {
  const clean = runTests([...new Set(chosen.flatMap(({ tests }) => tests))], folder);
  if (clean.length > 0) throw new Error(`tests fail before anything is taken out: ${JSON.stringify(clean)}`);
  for (const mutation of chosen) {
    const noticed = testWithout(mutation, folder);
    if (noticed.length === 0) survived += 1;
    rows.set(keyOf(mutation), tableRow(mutation, noticed));
    const verdict =
      noticed.length === 0 ? 'NOBODY NOTICED' : `noticed by ${noticed.map(({ file }) => file).join(', ')}`;
    stdout.write(`${mutation.row}: ${mutation.holds}: ${verdict}\n`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
if (values.write === true) writeTable(rows);
stdout.write(`${chosen.length - survived} of ${chosen.length} noticed\n`);
exit(survived > 0 ? 1 : 0);
