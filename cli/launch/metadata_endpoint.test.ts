import { createServer, type IncomingHttpHeaders, request, type Server } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listen } from '../../machine/connection/listen.ts';
import { type MetadataEndpoint, openMetadataEndpoint } from './metadata_endpoint.ts';

const TOKEN_PATH = '/computeMetadata/v1/instance/service-accounts/default/token?scopes=a';

let sidecar: Server;
let asked: { readonly url: string; readonly headers: IncomingHttpHeaders }[];
let origin: string;
let endpoint: MetadataEndpoint;
beforeEach(async () => {
  asked = [];
  sidecar = createServer(({ url = '', headers }, response) => {
    asked.push({ url, headers });
    response.writeHead(200, { 'content-type': 'application/json', 'metadata-flavor': 'Google', 'set-cookie': 'a=1' });
    response.end('{"access_token":"placeholder"}');
  });
  origin = `http://127.0.0.1:${await listen(sidecar, 0, '127.0.0.1')}`;
  endpoint = await openMetadataEndpoint({ origin, token: 'of-the-session' });
});
afterEach(async () => {
  await endpoint.close();
  sidecar.closeAllConnections();
  await new Promise((resolve) => sidecar.close(resolve));
});

interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** With the request target and the headers exactly as given. */
function ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Reply> {
  const [host, port] = endpoint.host.split(':');
  return new Promise((resolve, reject) => {
    const asking = request({ host, port, path, method, headers, agent: false }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (some: string) => {
        body += some;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }));
    });
    asking.on('error', reject);
    asking.end();
  });
}

describe('the listener for Google’s libraries', () => {
  it('asks the sidecar with the session’s token, which no client sends or sees', async () => {
    const reply = await ask(TOKEN_PATH, { 'metadata-flavor': 'Google' });
    expect(reply).toMatchObject({ status: 200, body: '{"access_token":"placeholder"}' });
    expect(reply.headers).toMatchObject({ 'metadata-flavor': 'Google', 'content-type': 'application/json' });
    expect(reply.headers).not.toHaveProperty('set-cookie');
    expect(asked).toMatchObject([
      { url: TOKEN_PATH, headers: { authorization: 'Bearer of-the-session', 'metadata-flavor': 'Google' } },
    ]);
  });

  it('leaves what the metadata server’s rules are about to the sidecar, and carries nothing else', async () => {
    await ask(TOKEN_PATH, { 'x-forwarded-for': '10.0.0.1', authorization: 'Bearer other', cookie: 'a=1' });
    expect(asked[0]?.headers).toMatchObject({ 'x-forwarded-for': '10.0.0.1', authorization: 'Bearer of-the-session' });
    expect(Object.keys(asked[0]?.headers ?? {})).not.toEqual(expect.arrayContaining(['metadata-flavor']));
    expect(asked[0]?.headers).not.toHaveProperty('cookie');
  });

  it.each([
    '/v1/health',
    '/v1/sandbox-proxy/sessions',
    '/computeMetadata/../v1/health',
    '/computeMetadata/%2e%2e/v1/health',
    '/computeMetadataX/v1',
    '//127.0.0.1:1/computeMetadata/v1/',
    'http://metadata.google.internal/computeMetadata/v1/',
  ])('reaches no other path of the sidecar: %s', async (path) => {
    expect((await ask(path, { 'metadata-flavor': 'Google' })).status).toBe(404);
    expect(asked).toEqual([]);
  });

  it.each(['evil.test', 'metadata.google.internal', '127.0.0.1.evil.test'])(
    'is led to by no other name, as a browser would be: %s',
    async (host) => {
      expect((await ask(TOKEN_PATH, { 'metadata-flavor': 'Google', host })).status).toBeGreaterThanOrEqual(400);
      expect(asked).toEqual([]);
    },
  );

  it('only reads', async () => {
    expect((await ask(TOKEN_PATH, { 'metadata-flavor': 'Google' }, 'POST')).status).toBe(405);
  });

  it('answers 503 while the sidecar is gone, and goes on when it is back', async () => {
    const port = Number(new URL(origin).port);
    sidecar.closeAllConnections();
    await new Promise((resolve) => sidecar.close(resolve));
    expect((await ask(TOKEN_PATH, { 'metadata-flavor': 'Google' })).status).toBe(503);
    await listen(sidecar, port, '127.0.0.1');
    expect((await ask(TOKEN_PATH, { 'metadata-flavor': 'Google' })).status).toBe(200);
  });

  it('is closed with the command', async () => {
    await endpoint.close();
    await expect(ask(TOKEN_PATH)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    endpoint = await openMetadataEndpoint({ origin, token: 'of-the-session' });
  });
});
