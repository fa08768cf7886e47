import { describe, expect, test } from 'vitest';
import { PUBLIC_URL } from '../../../e2e/runtimes/hosted_users.ts';
import { startInProcess } from '../../../e2e/runtimes/in_process.ts';
import type { StartInput } from '../../installation/start.ts';

/** What pages, the API and refusals send to browsers. */
async function readHstsHeaders(
  input: Partial<StartInput>,
  headers: Record<string, string> = {},
): Promise<(string | null)[]> {
  const control = await startInProcess(input);
  const paths = ['/sign-in', '/v1/health', '/v1/me', '/nothing'];
  const replies = await Promise.all(paths.map((path) => control.send(path, { headers })));
  await control.stop();
  return [...new Set(replies.map((reply) => reply.headers.get('strict-transport-security')))];
}

const TWO_YEARS = ['max-age=63072000'];
const HTTPS = { 'x-forwarded-proto': 'https' };

describe('a browser is told to use https only', () => {
  test('by a hosted control plane whose origin is https', async () => {
    expect(await readHstsHeaders({ localKey: null, publicUrl: PUBLIC_URL })).toEqual(TWO_YEARS);
  });

  test('by a hosted one that it called over https', async () => {
    expect(await readHstsHeaders({ localKey: null }, HTTPS)).toEqual(TWO_YEARS);
    expect(await readHstsHeaders({ localKey: null }, { 'x-forwarded-proto': 'HTTPS, http' })).toEqual(TWO_YEARS);
  });

  test('but not by a hosted one over http', async () => {
    expect(await readHstsHeaders({ localKey: null })).toEqual([null]);
    expect(await readHstsHeaders({ localKey: null }, { 'x-forwarded-proto': 'http' })).toEqual([null]);
  });

  test('and never by a local one, whatever the headers', async () => {
    expect(await readHstsHeaders({}, HTTPS)).toEqual([null]);
    expect(await readHstsHeaders({ publicUrl: PUBLIC_URL }, HTTPS)).toEqual([null]);
  });
});
