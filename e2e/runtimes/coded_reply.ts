import { type IncomingHttpHeaders, request } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';

/** A reply as it came, and the text that its body stands for. */
export interface CodedReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: number;
  readonly text: string;
}

/** Asks by a client that decodes nothing by itself. */
export function askCoded(url: string, headers: Record<string, string>, method = 'GET'): Promise<CodedReply> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent: false }, async (reply) => {
      const chunks: Buffer[] = [];
      for await (const chunk of reply) chunks.push(Buffer.from(chunk));
      const body = Buffer.concat(chunks);
      const { statusCode: status = 0, headers: said } = reply;
      resolve({ status, headers: said, bytes: body.length, text: decoded(body, said['content-encoding']) });
    });
    sent.on('error', reject);
    sent.end();
  });
}

function decoded(body: Buffer, coding: string | undefined): string {
  if (body.length === 0 || coding === undefined) return body.toString();
  if (coding === 'br') return brotliDecompressSync(body).toString();
  if (coding === 'gzip') return gunzipSync(body).toString();
  throw new Error(`the reply is ${coding}`);
}
