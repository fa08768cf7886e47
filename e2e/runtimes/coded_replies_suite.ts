import { once } from 'node:events';
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';

const ANY = { 'accept-encoding': 'gzip, deflate, br' };
const codingOf = ({ headers }: CodedReply) => headers['content-encoding'];

/** Which replies are compressed, by the program or by its platform (decision 0040). */
export function describeCodedReplies(
  control: () => { readonly url: string; readonly headers: Readonly<Record<string, string>> },
  { isPlatformDoing }: { readonly isPlatformDoing: boolean },
): void {
  const ask = (path: string, headers: Record<string, string>, method = 'GET') =>
    askCoded(control().url + path, { ...headers, ...control().headers }, method);
  /** The platform decides about lengths itself. */
  const length = (reply: CodedReply) => (isPlatformDoing ? null : reply.headers['content-length']);
  const ours = <T>(expected: T) => (isPlatformDoing ? null : expected);

  test.each(['/openapi.json', '/docs'])('%s is sent compressed', async (path) => {
    const plain = await ask(path, {});
    const coded = await ask(path, ANY);
    expect([plain.status, codingOf(plain), coded.text === plain.text]).toEqual([200, undefined, true]);
    expect([codingOf(coded), coded.headers.vary]).toEqual(['gzip', 'Accept-Encoding']);
    expect(length(coded)).toBe(ours(String(coded.bytes)));
  });

  test('what another user may have influenced is not, and no proxy may compress it', async () => {
    const guessed = await ask('/docs', { ...ANY, cookie: 'svc_session=of-a-browser', 'sec-fetch-site': 'cross-site' });
    expect([guessed.status, guessed.headers['cache-control']]).toEqual([200, 'no-store, no-transform']);
    // The platform's emulation ignores that.
    expect(isPlatformDoing ? null : (codingOf(guessed) ?? 'none')).toBe(ours('none'));
  });

  test("the pages' files are sent compressed, once to each browser, each encoding with its own tag", async () => {
    const [path = ''] = /\/assets\/style\.[0-9a-f]{16}\.css/.exec((await ask('/docs', {})).text) ?? [];
    const plain = await ask(path, {});
    const coded = await ask(path, ANY);
    expect([plain.status, codingOf(plain), coded.text === plain.text]).toEqual([200, undefined, true]);
    expect(codingOf(coded)).toBe(isPlatformDoing ? 'gzip' : 'br');
    expect(coded.headers.etag === plain.headers.etag).toBe(isPlatformDoing);
    const head = await ask(path, ANY, 'HEAD');
    expect([head.status, head.bytes, head.headers.etag]).toEqual([200, 0, coded.headers.etag]);
    expect(length(head)).toBe(ours(String(coded.bytes)));
    const held = await ask(path, { ...ANY, 'if-none-match': coded.headers.etag ?? '' });
    expect([held.status, held.bytes, held.headers.etag]).toEqual([304, 0, coded.headers.etag]);
  });
}

/** A reply as received, and the decoded text of its body. */
interface CodedReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: number;
  readonly text: string;
}

/** Sends a request with a client that does not decode. */
async function askCoded(url: string, headers: Record<string, string>, method = 'GET'): Promise<CodedReply> {
  const sent = request(url, { method, headers, agent: false });
  const answered: Promise<IncomingMessage[]> = once(sent, 'response');
  sent.end();
  const [reply] = await answered;
  if (reply === undefined) throw new Error('there is no reply');
  const body = await buffer(reply);
  const { statusCode: status = 0, headers: said } = reply;
  return { status, headers: said, bytes: body.length, text: decodeBody(body, said['content-encoding']) };
}

function decodeBody(body: Buffer, coding: string | undefined): string {
  if (body.length === 0 || coding === undefined) return body.toString();
  if (coding === 'br') return brotliDecompressSync(body).toString();
  if (coding === 'gzip') return gunzipSync(body).toString();
  throw new Error(`the reply is ${coding}`);
}
