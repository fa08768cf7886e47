import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openHostToken } from './host_token.ts';

let home: string;
let path: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-token-'));
  path = join(home, 'sidecar', 'host.token');
});

afterEach(() => {
  rmSync(home, { recursive: true });
});

describe('the host token', () => {
  it('is created once, in a file that only its owner can read', async () => {
    const first = await openHostToken(path);
    expect(first).toMatchObject({ ok: true, value: expect.stringMatching(/^svc_host_[A-Za-z0-9_-]{43}$/) });
    expect(await openHostToken(path)).toEqual(first);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(first.ok && readFileSync(path, 'utf8')).toBe(`${first.ok && first.value}\n`);
  });

  it.each(['', 'svc_host_short', 'x'.repeat(52)])('is an error if damaged, and is not replaced: %j', async (text) => {
    await openHostToken(path);
    writeFileSync(path, text);
    expect(await openHostToken(path)).toMatchObject({
      ok: false,
      error: { reason: 'state_file_corrupt', message: expect.stringContaining(path) },
    });
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  it('is refused if other users can read it', async () => {
    await openHostToken(path);
    chmodSync(path, 0o644);
    expect(await openHostToken(path)).toMatchObject({ ok: false, error: { reason: 'state_file_exposed' } });
  });
});
