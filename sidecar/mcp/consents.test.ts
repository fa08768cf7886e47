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
  test('start empty, and reading them writes nothing', () => {
    expect(consents.listAll()).toEqual([]);
    expect(readdirSync(home)).toEqual([]);
  });

  test('outlive the process, in a file that only the owner can read', async () => {
    const given = await consents.give(SAMPLE);
    expect(given).toEqual({ ok: true, value: { ...SAMPLE, consented_at: '2026-01-02T03:04:05.678Z' } });
    expect(open().listAll()).toEqual([given.ok && given.value]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    expect(readdirSync(directory)).toEqual(['consents.json']);
  });

  test('a newer consent replaces the earlier one', async () => {
    await consents.give(SAMPLE);
    await consents.give({ ...SAMPLE, server_id: 'mcp_2' });
    await consents.give({ ...SAMPLE, hash: 'b'.repeat(64) });
    expect(consents.listAll().map(({ server_id: id, hash }) => [id, hash[0]])).toEqual([
      ['mcp_2', 'a'],
      ['mcp_1', 'b'],
    ]);
  });

  test('all consents given at the same time are stored', async () => {
    const ids = ['mcp_1', 'mcp_2', 'mcp_3', 'mcp_4'];
    await Promise.all(ids.map((id) => consents.give({ ...SAMPLE, server_id: id })));
    expect(consents.listAll().map(({ server_id: id }) => id)).toEqual(ids);
  });

  test('keep the hosts of a closed network, which can be replaced; an open one gets no list', async () => {
    await consents.give({ ...SAMPLE, hosts: ['a.test'] });
    await consents.give({ ...SAMPLE, server_id: 'mcp_2' });
    expect(await consents.allowHosts('mcp_1', ['a.test', 'b.test'])).toEqual({ ok: true, value: true });
    expect(await consents.allowHosts('mcp_2', ['b.test'])).toEqual({ ok: true, value: false });
    expect(await consents.allowHosts('mcp_3', ['b.test'])).toEqual({ ok: true, value: false });
    expect(
      open()
        .listAll()
        .map(({ hosts }) => hosts),
    ).toEqual([['a.test', 'b.test'], undefined]);
  });

  test('keep the id of an image', async () => {
    const image = `sha256:${'c'.repeat(64)}`;
    await consents.give({ ...SAMPLE, image });
    expect(open().listAll()).toMatchObject([{ image }]);
  });

  test('can be withdrawn', async () => {
    await consents.give(SAMPLE);
    expect(await consents.withdraw('mcp_1')).toEqual({ ok: true, value: true });
    expect(await consents.withdraw('mcp_1')).toEqual({ ok: true, value: false });
    expect(consents.listAll()).toEqual([]);
  });

  test('deleting the file withdraws every consent at once', async () => {
    await consents.give(SAMPLE);
    rmSync(path);
    expect(consents.listAll()).toEqual([]);
  });

  test('report each change', async () => {
    let changes = 0;
    const cancel = consents.onChange(() => (changes += 1));
    await consents.give(SAMPLE);
    await consents.withdraw('mcp_1');
    cancel();
    await consents.give(SAMPLE);
    expect(changes).toBe(2);
  });
});

describe('an unusable file', () => {
  test.each([
    ['not JSON', '{'],
    ['another shape', '[]'],
    ['an unknown field', JSON.stringify({ version: 1, consents: [{ ...SAMPLE, consented_at: '', all: true }] })],
    [
      'a tag in the place of an image',
      JSON.stringify({ version: 1, consents: [{ ...SAMPLE, consented_at: '', image: 'acme/mcp:1.2' }] }),
    ],
  ])('gives no consent, is reported once, and is not replaced: %s', async (_, text) => {
    await consents.give(SAMPLE);
    writeFileSync(path, text);
    expect(consents.listAll()).toEqual([]);
    expect(consents.listAll()).toEqual([]);
    expect(warnings).toHaveLength(1);
    expect(await consents.give(SAMPLE)).toMatchObject({
      ok: false,
      error: { reason: 'state_file_corrupt', message: expect.stringContaining(path) },
    });
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  test('a file that others can write counts as no consent', async () => {
    await consents.give(SAMPLE);
    chmodSync(path, 0o666);
    expect(consents.listAll()).toEqual([]);
    expect(warnings[0]).toContain('chmod 600');
  });

  test('an unusable folder is refused with the path of the file', async () => {
    writeFileSync(directory, 'a file in place of the folder');
    expect(await consents.give(SAMPLE)).toMatchObject({ ok: false, error: { message: expect.stringContaining(path) } });
  });
});
