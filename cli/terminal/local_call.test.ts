import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterEach, expect, test } from 'vitest';
import { callLocally } from './local_call.ts';

let server: Server | null = null;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

async function serve(answer: RequestListener): Promise<URL> {
  server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return new URL(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/v1/me?a=b`);
}

/** Answers with what has been sent. */
async function echo(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { authorization, 'content-length': stated } = request.headers;
  response.writeHead(201, { 'x-reply': 'yes' });
  response.end(JSON.stringify([request.method, request.url, authorization, stated, await text(request)]));
}

const call = { method: 'GET', redirect: 'manual', headers: {}, signal: new AbortController().signal } as const;

test.each([
  { method: 'GET', body: undefined, length: undefined },
  { method: 'POST', body: undefined, length: '0' },
  { method: 'POST', body: '{"ä":1}', length: '8' },
  { method: 'DELETE', body: '{}', length: '2' },
])('sends $method with the body $body', async ({ method, body, length }) => {
  const url = await serve((request, response) => void echo(request, response));
  const headers = { authorization: 'Bearer t' };
  const reply = await callLocally(url, { ...call, method, headers, ...(body !== undefined && { body }) });
  expect(reply).toMatchObject({ status: 201, ok: true });
  expect(reply.headers.get('X-Reply')).toBe('yes');
  expect(reply.headers.get('x-other')).toBeNull();
  expect(JSON.parse(await reply.text())).toEqual([method, '/v1/me?a=b', 'Bearer t', length ?? null, body ?? '']);
});

test('follows no redirect', async () => {
  const url = await serve((_, response) => void response.writeHead(302, { location: '/other' }).end());
  const reply = await callLocally(url, call);
  expect([reply.status, reply.ok, await reply.text()]).toEqual([302, false, '']);
});

test('names the cause if nothing listens', async () => {
  const url = await serve(() => undefined);
  server?.close();
  await expect(callLocally(url, call)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
});

test('ends with the reason of its signal, before the reply and within it', async () => {
  const stop = new AbortController();
  const waiting = callLocally(await serve(() => stop.abort(new Error('too late'))), { ...call, signal: stop.signal });
  await expect(waiting).rejects.toThrow('too late');
  const later = new AbortController();
  const url = await serve((_, response) => void response.write('begun'));
  const reply = await callLocally(url, { ...call, signal: later.signal });
  later.abort(new Error('enough'));
  await expect(reply.text()).rejects.toThrow('enough');
});

test('names the cause if the reply breaks off', async () => {
  const url = await serve((_, response) => void response.write('begun'));
  const reply = await callLocally(url, call);
  server?.closeAllConnections();
  await expect(reply.text()).rejects.toMatchObject({ message: 'terminated', cause: { code: 'ECONNRESET' } });
});

test('does not load the fetch of Node, which would take longer than the call', async () => {
  const url = await serve((_, response) => void response.end('answered'));
  const script = `
    const { callLocally } = await import(${JSON.stringify(new URL('local_call.ts', import.meta.url).href)});
    const reply = await callLocally(new URL(${JSON.stringify(url.href)}), {
      method: 'GET', redirect: 'manual', headers: {}, signal: AbortSignal.timeout(60_000) });
    console.log(await reply.text(), process.moduleLoadList.filter((name) => name.includes('undici')).length);`;
  const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
  expect((await run).stdout).toBe('answered 0\n');
});
