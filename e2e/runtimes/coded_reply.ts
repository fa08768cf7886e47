import { once } from 'node:events';
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';

/** A reply as received, and the decoded text of its body. */
export interface CodedReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: number;
  readonly text: string;
}

/** Sends a request with a client that does not decode. */
export async function askCoded(url: string, headers: Record<string, string>, method = 'GET'): Promise<CodedReply> {
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
