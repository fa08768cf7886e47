import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { REFUSALS } from '../shared/model/refusal.ts';
import { MUTATIONS } from './mutations.ts';

const ROOT = join(import.meta.dirname, '..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
/** Refusals of requests to operations of connectors, which have their own rows. */
const OF_CONNECTORS = [
  'ambiguous_target',
  'connector_specs_invalid',
  'reauthorisation_required',
  'approval_required',
  'approval_denied',
];

const NAMES = /[A-Za-z_$][\w$]*/g;
const WORDS_BEFORE_PARENTHESES = new Set(['if', 'for', 'while', 'switch', 'catch', 'return', 'await']);

describe('the list of checks', () => {
  it('names code that its file contains exactly once, and existing tests', () => {
    const moved = MUTATIONS.filter(({ file, text }) => read(file).split(text).length !== 2);
    expect(moved.map(({ file, text }) => `${file}: ${text}`)).toEqual([]);
    expect(MUTATIONS.flatMap(({ tests }) => tests).filter((test) => !existsSync(join(ROOT, test)))).toEqual([]);
  });

  it('calls only functions that its file knows, so that a renamed one does not fail every test', () => {
    const unknown = MUTATIONS.flatMap(({ file, replacement }) => {
      const known = new Set(read(file).match(NAMES));
      const called = [...replacement.matchAll(/(?<![.\w\\])([a-z]\w*)\(/g)].map(([, name = '']) => name);
      return called
        .filter((name) => !known.has(name) && !WORDS_BEFORE_PARENTHESES.has(name))
        .map((name) => `${file}: ${name}`);
    });
    expect(unknown).toEqual([]);
  });

  it('has a row for every refusal', () => {
    const rows = MUTATIONS.map(({ row, holds }) => `${row} ${holds}`).join('\n');
    const missing = Object.keys(REFUSALS).filter((reason) => !rows.includes(`\`${reason}\``));
    expect(missing.filter((reason) => !OF_CONNECTORS.includes(reason))).toEqual([]);
  });

  it('is in docs/invariants.md, each with the tests that fail without it', () => {
    const lines = read('docs/invariants.md').split('\n');
    const without = MUTATIONS.filter(
      ({ holds }) => !lines.some((line) => line.includes(holds) && line.includes('.test.ts')),
    );
    expect(without.map(({ holds }) => holds)).toEqual([]);
  });
});
