import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type InProcess, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { fileAssets } from '../../entries/file_assets.ts';

let control: InProcess;
beforeAll(async () => {
  control = await startInProcess();
});
afterAll(() => control.stop());

const { url, text, contentType } = fileAssets().listAll()[0]!;
const ask = (headers: Record<string, string>, method = 'GET') => control.send(url, { method, headers });
const SAID = ['content-encoding', 'content-length', 'etag', 'vary'];
const headersOf = (reply?: Response) => SAID.map((name) => reply?.headers.get(name));
const DECODED = {
  br: (bytes: Buffer) => brotliDecompressSync(bytes).toString(),
  gzip: (bytes: Buffer) => gunzipSync(bytes).toString(),
  identity: (bytes: Buffer) => bytes.toString(),
};

describe('a static file', () => {
  test.each([
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip, deflate', 'gzip'],
    ['br;q=0.5, gzip', 'gzip'],
    ['br;q=0, *', 'gzip'],
    ['identity', 'identity'],
    ['', 'identity'],
  ] as const)('is sent in the coding that suits %j best', async (accepted, coding) => {
    const reply = await ask({ 'accept-encoding': accepted });
    const bytes = Buffer.from(await reply.arrayBuffer());
    expect([reply.status, reply.headers.get('content-encoding') ?? 'identity']).toEqual([200, coding]);
    expect(DECODED[coding](bytes)).toBe(text);
    expect(reply.headers.get('content-length')).toBe(String(bytes.length));
    expect(reply.headers.get('content-type')).toBe(contentType);
    expect([reply.headers.get('vary'), reply.headers.get('cache-control')]).toEqual([
      'Accept-Encoding',
      'public, max-age=31536000, immutable',
    ]);
  });

  test('has a strong entity tag for each coding', async () => {
    const tags = await Promise.all(
      ['br', 'gzip', 'identity'].map(async (accepted) =>
        (await ask({ 'accept-encoding': accepted })).headers.get('etag'),
      ),
    );
    expect(new Set(tags).size).toBe(3);
    for (const tag of tags) expect(tag).toMatch(/^"[0-9a-f]{16}(-br|-gzip)?"$/);
  });

  test.each(['GET', 'HEAD'])('is not sent again to a client that has it: %s', async (method) => {
    const tag = (await ask({ 'accept-encoding': 'br' })).headers.get('etag') ?? '';
    for (const held of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
      const reply = await ask({ 'accept-encoding': 'br', 'if-none-match': held }, method);
      expect([reply.status, reply.headers.get('etag'), reply.headers.get('vary')]).toEqual([
        304,
        tag,
        'Accept-Encoding',
      ]);
      expect([reply.headers.get('content-encoding'), await reply.text()]).toEqual([null, '']);
    }
    // The client has the same file in another coding.
    expect((await ask({ 'accept-encoding': 'gzip', 'if-none-match': tag }, method)).status).toBe(200);
  });

  test('has the same headers for HEAD as for GET', async () => {
    const [get, head] = await Promise.all(['GET', 'HEAD'].map((method) => ask({ 'accept-encoding': 'br' }, method)));
    expect(headersOf(head)).toEqual(headersOf(get));
    expect((await head!.arrayBuffer()).byteLength).toBe(0);
  });
});
