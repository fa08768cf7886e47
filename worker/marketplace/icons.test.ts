import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type RegistryServer, startRegistryServer } from '../../e2e/marketplace/registry_server.ts';
import { type InProcess, openBrowserSession, parseReply, startInProcess } from '../../e2e/runtimes/in_process.ts';
import { ok } from '../../shared/model/result.ts';
import { marketplacePage } from '../../shared/wire/marketplace.ts';
import { nodeOutbound } from '../entries/node_outbound.ts';
import { fetchOutbound } from '../kernel/fetch_outbound.ts';
import { ProgramLifetime } from '../kernel/lifetime.ts';
import type { OutboundRequest } from '../kernel/outbound.ts';
import { openIcons, readIcon } from './icons.ts';

const bytesOf = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));
const PNG = '\u0089PNG\r\n\u001a\nrest';

describe('an image', () => {
  test.each([
    [PNG, 'image/png'],
    ['\u00ff\u00d8\u00ff\u00e0', 'image/jpeg'],
    ['RIFF\u0001\u0002\u0003\u0004WEBPVP8 ', 'image/webp'],
    ['GIF89a', 'image/gif'],
  ])('%j is %s, whatever it is called', (text, type) => {
    expect(readIcon(bytesOf(text))?.type).toBe(type);
  });

  test.each([
    '<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>',
    '<html>',
    ' GIF89a',
    'RIFF1234WAVE',
    'GIF',
    '',
  ])('%j is none', (text) => {
    expect(readIcon(bytesOf(text))).toBeNull();
  });

  test('the images in memory are limited, and a missing one is asked for again', () => {
    const icons = openIcons();
    const icon = readIcon(new Uint8Array([...bytesOf(PNG), ...new Uint8Array(64 * 1024)]));
    for (let number = 0; number < 100; number += 1) icons.note(`u${number}`, icon, 0);
    expect([icons.find('u0', 1), icons.find('u99', 1)?.value]).toEqual([null, icon]);
    icons.note('missing', null, 0);
    expect([icons.find('missing', 1), icons.find('missing', 3600_000)]).toEqual([
      expect.objectContaining({ value: null }),
      null,
    ]);
    const calls = Array.from({ length: 121 }, () => icons.mayCall(0));
    expect([calls.indexOf(false), icons.mayCall(60_000)]).toEqual([120, true]);
  });
});

test.each([
  'https://127.0.0.1/x.png',
  'https://[::1]/x.png',
  'https://10.0.0.1/x.png',
  'https://metadata/x.png',
  'http://localhost:1/x.png',
  'http://127.0.0.1:1/x.png',
  'https://a.test:8443/x.png',
])("a stranger's address %s is not called, also in local mode", async (url) => {
  const request = { method: 'GET', url, headers: {}, body: null, isStrangers: true };
  for (const outbound of [nodeOutbound({ isLocal: true, pinned: new Map() }), fetchOutbound(true)]) {
    expect(await outbound.call(request)).toMatchObject({
      ok: false,
      error: { message: expect.stringContaining('cannot be called') },
    });
  }
});

const resolvePrivate = (
  _name: string,
  _options: unknown,
  callback: (error: null, found: { address: string; family: number }[]) => void,
) => callback(null, [{ address: '169.254.169.254', family: 4 }]);

test("a stranger's name is resolved, and not called if its address is private, also in local mode", async () => {
  const pinned = new Map([['icons.test', { address: '127.0.0.1', port: 1 }]]);
  const outbound = nodeOutbound({ isLocal: true, pinned, resolve: resolvePrivate });
  const request = { method: 'GET', url: 'https://icons.test/x.png', headers: {}, body: null, isStrangers: true };
  expect(await outbound.call(request)).toMatchObject({
    ok: false,
    error: { message: expect.stringContaining('resolves to a private address') },
  });
});

test('a private host that the operator names is not called for a publisher', async () => {
  const privateHosts = ['icons.test'];
  const outbound = nodeOutbound({ isLocal: false, pinned: new Map(), resolve: resolvePrivate, privateHosts });
  const request = { method: 'GET', url: 'https://icons.test/x.png', headers: {}, body: null, isStrangers: true };
  expect(await outbound.call(request)).toMatchObject({
    ok: false,
    error: { message: expect.stringContaining('resolves to a private address') },
  });
});

describe('the image of an entry', () => {
  let registry: RegistryServer;
  let control: InProcess;
  let lifetime: ProgramLifetime;
  let cookie = '';
  const calls: OutboundRequest[] = [];
  let served = PNG;

  beforeEach(async () => {
    calls.length = 0;
    served = PNG;
    registry = await startRegistryServer({ entries: 1 });
    const publish = (name: string, icons: readonly unknown[]) =>
      registry.publish({
        server: { name, version: '1.0.0', icons },
        status: 'active',
        updatedAt: '2026-02-01T00:00:00Z',
      });
    publish('com.acme/one', [
      { src: 'https://acme.test/logo.svg', mimeType: 'image/svg+xml' },
      { src: 'http://acme.test/plain.png' },
      { src: 'https://acme.test/logo.png', mimeType: 'image/png' },
    ]);
    publish('com.acme/none', [{ src: 'javascript:alert(1)' }, { src: 'https://acme.test/LOGO.SVG' }, null]);
    lifetime = new ProgramLifetime((what, error) => {
      throw new Error(`deferred: ${what}`, { cause: error });
    });
    const toRegistry = nodeOutbound({ isLocal: true, pinned: new Map() });
    const outbound = {
      call: async (request: OutboundRequest) => {
        if (request.url.startsWith(registry.url)) return toRegistry.call(request);
        calls.push(request);
        return ok({ status: 200, contentType: 'image/svg+xml', body: bytesOf(served) });
      },
    };
    control = await startInProcess({ lifetime, outbound, registry: { url: registry.url } });
    cookie = await openBrowserSession(control);
    await control.send('/v1/marketplace/servers');
    await lifetime.drain();
  });
  afterEach(async () => {
    lifetime.beginStop();
    await lifetime.drain();
    await control.stop();
    await registry.stop();
  });

  const open = (name: string, headers: Record<string, string> = { cookie }) =>
    control.inBrowser(`/marketplace-icons/${encodeURIComponent(name)}`, { headers });

  test('is fetched once, as from a stranger, and sent with headers under which nothing in it runs', async () => {
    const replies = [await open('com.acme/one'), await open('com.acme/one')];
    for (const reply of replies) {
      expect([reply.status, Buffer.from(await reply.arrayBuffer()).toString('latin1')]).toEqual([200, PNG]);
      expect(Object.fromEntries(reply.headers)).toMatchObject({
        'content-type': 'image/png',
        'x-content-type-options': 'nosniff',
        'content-security-policy': "default-src 'none'; sandbox",
        'cross-origin-resource-policy': 'same-origin',
      });
    }
    const limits = { maxReplyBytes: 64 * 1024, timeoutMs: 5_000 };
    expect(calls).toMatchObject([{ url: 'https://acme.test/logo.png', isStrangers: true, limits }]);
    expect(Object.keys(calls[0]?.headers ?? {}).toSorted()).toEqual(['accept', 'user-agent']);
  });

  test('is left out for a short time if it is no raster image', async () => {
    served = '<svg xmlns="http://www.w3.org/2000/svg"/>';
    const reply = await open('com.acme/one');
    const pixel = Buffer.from(await reply.arrayBuffer());
    expect([reply.status, pixel.toString('latin1').slice(0, 6), pixel.length]).toEqual([200, 'GIF89a', 42]);
    expect(Object.fromEntries(reply.headers)).toMatchObject({
      'content-type': 'image/gif',
      'cache-control': 'private, max-age=300',
    });
  });

  test('is fetched for users only, and only for entries that have one', async () => {
    for (const name of ['com.acme/none', 'com.acme/unknown', 'https://acme.test/x.png', '..%2f']) {
      expect([name, (await open(name)).status]).toEqual([name, 404]);
    }
    expect((await open('com.acme/one', {})).status).toBe(404);
    expect(calls).toEqual([]);
    const list = (headers: Record<string, string>) =>
      parseReply(marketplacePage, control.send('/v1/marketplace/servers?q=com.acme', { headers }));
    const shown = async (headers: Record<string, string>) =>
      (await list(headers)).items.map(({ name, has_icon: hasIcon }) => [name, hasIcon]);
    expect(await shown({ authorization: `Bearer ${control.localKey}` })).toEqual([
      ['com.acme/none', false],
      ['com.acme/one', true],
    ]);
    expect((await shown({})).flat()).not.toContain(true);
  });
});
