import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FakeClock } from '../testing/fakes.ts';
import { Consents } from './consents.ts';

let home: string;
let directory: string;
let path: string;
let warnings: string[];
let consents: Consents;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-consents-'));
  directory = join(home, 'mcp');
  path = join(directory, 'consents.json');
  warnings = [];
  consents = open();
});
afterEach(() => rmSync(home, { recursive: true }));

function open(): Consents {
  return new Consents({ directory, clock: new FakeClock(), warn: (message) => void warnings.push(message) });
}

const SAMPLE = { server_id: 'mcp_1', name: 'files', hash: 'a'.repeat(64), text: '{"command":["files"]}' };

describe('the consents of a machine', () => {
  test('are none to begin with, and nothing is written for that', () => {
    expect(consents.findConsent('mcp_1')).toBeNull();
    expect(readdirSync(home)).toEqual([]);
  });

  test('outlive the process, in a file that only their owner reads', async () => {
    const given = await consents.give(SAMPLE);
    expect(given).toEqual({ ok: true, value: { ...SAMPLE, consented_at: '2026-01-02T03:04:05.678Z' } });
    expect(open().findConsent('mcp_1')).toEqual(given.ok && given.value);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    expect(readdirSync(directory)).toEqual(['consents.json']);
  });

  test('a newer one takes the place of the one before it', async () => {
    await consents.give(SAMPLE);
    await consents.give({ ...SAMPLE, server_id: 'mcp_2' });
    await consents.give({ ...SAMPLE, hash: 'b'.repeat(64) });
    expect(consents.listAll().map(({ server_id: id, hash }) => [id, hash[0]])).toEqual([
      ['mcp_2', 'a'],
      ['mcp_1', 'b'],
    ]);
  });

  test('given at the same time are all kept', async () => {
    const ids = ['mcp_1', 'mcp_2', 'mcp_3', 'mcp_4'];
    await Promise.all(ids.map((id) => consents.give({ ...SAMPLE, server_id: id })));
    expect(consents.listAll().map(({ server_id: id }) => id)).toEqual(ids);
  });

  test('can be taken back', async () => {
    await consents.give(SAMPLE);
    expect(await consents.withdraw('mcp_1')).toEqual({ ok: true, value: true });
    expect(await consents.withdraw('mcp_1')).toEqual({ ok: true, value: false });
    expect(consents.findConsent('mcp_1')).toBeNull();
  });

  test('taking the file away takes every consent back, at once', async () => {
    await consents.give(SAMPLE);
    rmSync(path);
    expect(consents.findConsent('mcp_1')).toBeNull();
  });

  test('tell of each change', async () => {
    let changes = 0;
    const cancel = consents.onChange(() => (changes += 1));
    await consents.give(SAMPLE);
    await consents.withdraw('mcp_1');
    cancel();
    await consents.give(SAMPLE);
    expect(changes).toBe(2);
  });
});

describe('a file that cannot be used', () => {
  test.each([
    ['no JSON', '{'],
    ['another form', '[]'],
    [
      'a field that is not known',
      JSON.stringify({ version: 1, consents: [{ ...SAMPLE, consented_at: '', all: true }] }),
    ],
  ])('is no consent, is told of once, and is not replaced: %s', async (_, text) => {
    await consents.give(SAMPLE);
    writeFileSync(path, text);
    expect(consents.findConsent('mcp_1')).toBeNull();
    expect(consents.findConsent('mcp_1')).toBeNull();
    expect(warnings).toHaveLength(1);
    expect(await consents.give(SAMPLE)).toMatchObject({
      ok: false,
      error: { reason: 'state_file_corrupt', message: expect.stringContaining(path) },
    });
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  test('one that others can read may have been written by them: it is no consent', async () => {
    await consents.give(SAMPLE);
    chmodSync(path, 0o666);
    expect(consents.findConsent('mcp_1')).toBeNull();
    expect(warnings[0]).toContain('chmod 600');
  });

  test('a folder that cannot be written is a refusal that names the file', async () => {
    writeFileSync(directory, 'a file stands where the folder should be');
    expect(await consents.give(SAMPLE)).toMatchObject({ ok: false, error: { message: expect.stringContaining(path) } });
  });
});
