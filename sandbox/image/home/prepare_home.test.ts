import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { prepareHome, type WantedHome } from './prepare_home.ts';

let home: string;
beforeEach(() => (home = mkdtempSync(join(tmpdir(), 'svc-home-'))));
afterEach(() => rmSync(home, { recursive: true, force: true }));

const WANTED: WantedHome = {
  files: [
    { path: '~/.agent.json', write: 'merge', json: { done: true, keys: { approved: ['b'] } } },
    { path: '~/.agent/auth.json', write: 'create', json: { key: 'placeholder-of-today' } },
  ],
  credentialFiles: [{ path: '~/.agent/auth.json', tokens: null }],
  placeholders: ['placeholder-of-today'],
};
const RECORD = '.svc-placeholders.json';
const prepare = (changes: Partial<WantedHome> = {}): readonly string[] => prepareHome(home, { ...WANTED, ...changes });
const at = (...path: string[]): string => join(home, ...path);
const read = (...path: string[]): unknown => JSON.parse(readFileSync(at(...path), 'utf8'));

describe('the home of an agent', () => {
  test('gets its files, which only the agent can read', () => {
    expect(prepare()).toEqual([]);
    expect(read('.agent.json')).toEqual({ done: true, keys: { approved: ['b'] } });
    expect(read('.agent', 'auth.json')).toEqual({ key: 'placeholder-of-today' });
    expect(statSync(at('.agent.json')).mode & 0o777).toBe(0o600);
    expect(statSync(at('.agent')).mode & 0o777).toBe(0o700);
    expect(readdirSync(home).toSorted()).toEqual(['.agent', '.agent.json', RECORD]);
  });

  test('keeps what the agent wrote', () => {
    writeFileSync(at('.agent.json'), JSON.stringify({ theme: 'dark', keys: { approved: ['a'], rejected: ['c'] } }));
    mkdirSync(at('.agent'));
    writeFileSync(at('.agent', 'auth.json'), '{"key":"placeholder-of-today","more":1}');
    expect(prepare()).toEqual([]);
    expect(prepare()).toEqual([]);
    expect(read('.agent.json')).toEqual({ theme: 'dark', done: true, keys: { approved: ['a', 'b'], rejected: ['c'] } });
    expect(read('.agent', 'auth.json')).toEqual({ key: 'placeholder-of-today', more: 1 });
  });

  test.each([
    ['is not valid JSON', '{ "a": '],
    ['is no JSON object', '[1]'],
  ])('is left unchanged if a file %s, and a line says so', (why, text) => {
    writeFileSync(at('.agent.json'), text);
    expect(prepare()).toEqual([`~/.agent.json ${why}, so it was not changed: the agent may ask about its placeholder`]);
    expect(readFileSync(at('.agent.json'), 'utf8')).toBe(text);
  });

  test('cannot make the start wait: a pipe is not opened, a link to nothing is not read', () => {
    spawnSync('mkfifo', [at('.agent.json')]);
    mkdirSync(at('.agent'));
    symlinkSync('/nonexistent', at('.agent', 'auth.json'));
    expect(prepare()).toEqual([
      '~/.agent.json is not a regular file, so it was not changed: the agent may ask about its placeholder',
    ]);
  });

  test('that cannot be written is named, and nothing is left behind', () => {
    writeFileSync(at('.agent'), 'a file where a folder has to be');
    const [problem, ...rest] = prepare({ credentialFiles: [] });
    expect(problem).toMatch(/^~\/\.agent\/auth\.json cannot be written \(.*(?:EEXIST|ENOTDIR)/);
    expect(rest).toEqual([]);
    expect(readdirSync(home).toSorted()).toEqual(['.agent', '.agent.json', RECORD]);
  });

  test.each([
    ['a login of its own', '{"refresh":"planted"}'],
    ['the placeholder of an earlier login', '{"key":"placeholder-of-before"}'],
  ])('with %s is reported: the agent may use it', (_what, text) => {
    mkdirSync(at('.agent'));
    writeFileSync(at('.agent', 'auth.json'), text);
    chmodSync(at('.agent', 'auth.json'), 0o600);
    const [problem = '', ...rest] = prepare();
    expect(problem).toBe('~/.agent/auth.json holds a login of the agent itself: the agent can read it and may use it');
    expect(problem).not.toContain('planted');
    expect(rest).toEqual([]);
  });

  test.each([
    ['gho_planted', 1],
    ['2026-11-23', 0],
  ])('with a file that is there also without a login is named only for its tokens: %s', (text, lines) => {
    mkdirSync(at('.agent'));
    writeFileSync(at('.agent', 'auth.json'), `// managed\n{"last":"${text}"}`);
    const credentialFiles = [{ path: '~/.agent/auth.json', tokens: ['gho_'] }];
    expect(prepare({ credentialFiles })).toHaveLength(lines);
  });

  test('has the placeholder of this start, where an earlier one has left its own', () => {
    prepare({ placeholders: ['placeholder-of-before'] });
    writeFileSync(at('.agent', 'auth.json'), '{"key":"placeholder-of-before","more":1}');
    expect(prepare()).toEqual([]);
    expect(read('.agent', 'auth.json')).toEqual({ key: 'placeholder-of-today' });
  });

  test('keeps a file without a placeholder of svc, whatever an agent has recorded', () => {
    mkdirSync(at('.agent'));
    writeFileSync(at('.agent', 'auth.json'), '{"key":"planted"}');
    for (const text of ['{"placeholders":["planted", 7]}', '[]', '{', '{"placeholders":"planted"}']) {
      writeFileSync(at(RECORD), text);
      expect(prepare()).toHaveLength(1);
      expect(read('.agent', 'auth.json')).toEqual({ key: 'planted' });
    }
    rmSync(at(RECORD));
    spawnSync('mkfifo', [at(RECORD)]);
    expect(prepare()).toHaveLength(1);
  });
});

const write = (json: object): void => {
  mkdirSync(at('.agent'), { recursive: true });
  writeFileSync(at('.agent', 'auth.json'), JSON.stringify(json));
};

describe("the file of an agent's own login", () => {
  const login = { tokens: { access: 'placeholder-of-today', account: 'a' }, mode: 'own' };
  const files: WantedHome['files'] = [{ path: '~/.agent/auth.json', write: 'login', json: login }];

  test('is written, beside what the agent has there', () => {
    expect(prepare({ files })).toEqual([]);
    expect(read('.agent', 'auth.json')).toEqual(login);
    write({ servers: { other: 'x' } });
    expect(prepare({ files })).toEqual([]);
    expect(read('.agent', 'auth.json')).toEqual({ servers: { other: 'x' }, ...login });
  });

  test.each([
    [
      'another account, with the same placeholder',
      { tokens: { access: 'placeholder-of-today', account: 'b', old: 1 } },
    ],
    ['the placeholder of an earlier start', { tokens: { access: 'placeholder-of-before' } }],
  ])('replaces %s', (_what, before) => {
    prepare({ files: [], placeholders: ['placeholder-of-before'] });
    write(before);
    expect(prepare({ files })).toEqual([]);
    expect(read('.agent', 'auth.json')).toEqual(login);
  });

  test('does not replace a login that the agent made itself, and names it', () => {
    const before = { tokens: { access: 'planted' }, mode: 'own' };
    write(before);
    const [problem, ...rest] = prepare({ files });
    expect(problem).toContain('holds a login of the agent itself');
    expect(rest).toEqual([]);
    expect(read('.agent', 'auth.json')).toEqual(before);
  });
});
