import { createServer, type Server } from 'node:https';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createAuthority, issueLeaf } from '../sidecar/tls/certificates.ts';
import { createHttpClient } from './http_call.ts';

describe('a control plane over TLS', () => {
  let server: Server;
  let caPem: string;
  let baseUrl: URL;

  beforeEach(async () => {
    const authority = await createAuthority('test authority', Date.now());
    const leaf = await issueLeaf(authority, 'localhost', Date.now());
    caPem = authority.certificatePem;
    server = createServer({ key: leaf.keyPem, cert: leaf.certificatePem }, (_request, response) =>
      response.end('hello'),
    );
    await new Promise<void>((resolve) => {
      server.listen(0, 'localhost', resolve);
    });
    const address = server.address();
    baseUrl = new URL(`https://localhost:${typeof address === 'object' ? address?.port : 0}`);
  });

  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  const call = { method: 'GET', target: '/', headers: {}, body: '', timeoutMs: 5_000 } as const;

  it('is trusted through an extra CA', async () => {
    const client = createHttpClient({ baseUrl, extraCa: [caPem], maxReplyBytes: 100 });
    expect(await client.call(call)).toMatchObject({ ok: true, value: { status: 200, body: 'hello' } });
    client.close();
  });

  it('is not trusted without it, nor under another name', async () => {
    const stranger = createHttpClient({ baseUrl, maxReplyBytes: 100 });
    expect(await stranger.call(call)).toMatchObject({ ok: false, error: { reason: 'untrusted_certificate' } });
    const named = createHttpClient({
      baseUrl: new URL(`https://127.0.0.1:${baseUrl.port}`),
      extraCa: [caPem],
      maxReplyBytes: 100,
    });
    expect(await named.call(call)).toMatchObject({ ok: false });
    stranger.close();
    named.close();
  });
});
