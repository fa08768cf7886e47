import { startHttp2Upstream } from '../support/http2_upstream.ts';
import { type Verdict, verifySigV4 } from '../support/sigv4_verifier.ts';
import type { Certificate } from '../support/test_ca.ts';

/** What of S3 puts and gets an object, over HTTP/2. AWS itself speaks HTTP/2 in other services, with the same signatures. */
export interface S3OverHttp2 {
  readonly port: number;
  /** The verdict on the signature of each request, in order. */
  readonly verdicts: Verdict[];
  close(): Promise<void>;
}

export async function startS3OverHttp2(
  certificate: Certificate,
  keys: { readonly accessKeyId: string; readonly secretAccessKey: string },
): Promise<S3OverHttp2> {
  const upstream = await startHttp2Upstream(certificate);
  const secrets = new Map([[keys.accessKeyId, keys.secretAccessKey]]);
  const verdicts: Verdict[] = [];
  const objects = new Map<string, Buffer>();
  upstream.onRequest((stream, request) => {
    const value = (name: string): string => request.value(name) ?? '';
    const headers = (name: string): string[] =>
      request.fields.filter(
        (_, at) => request.fields[at - 1] === (name === 'host' ? ':authority' : name) && at % 2 === 1,
      );
    const target = value(':path');
    const verdict = verifySigV4({ method: value(':method'), target, headers, body: request.body }, secrets, Date.now());
    verdicts.push(verdict);
    const key = target.split('?', 1)[0] ?? '';
    if (verdict.ok && value(':method') === 'PUT') objects.set(key, request.body);
    stream.respond({ ':status': verdict.ok ? 200 : 403, 'content-type': 'application/octet-stream' });
    stream.end(verdict.ok && value(':method') === 'GET' ? objects.get(key) : '');
  });
  return { port: upstream.port, verdicts, close: () => upstream.close() };
}
