import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { QuickClock } from '../../e2e/marketplace/quick_clock.ts';
import { type RegistryServer, startRegistryServer } from '../../e2e/marketplace/registry_server.ts';
import { type InProcess, openBrowserSession, parseReply, startInProcess } from '../../e2e/runtimes/in_process.ts';
import { readRegistryEntry } from '../../shared/mcp/registry_entry.ts';
import { ok } from '../../shared/model/result.ts';
import { marketplaceReadme } from '../../shared/wire/marketplace.ts';
import { nodeOutbound } from '../entries/node_outbound.ts';
import { ProgramLifetime } from '../kernel/lifetime.ts';
import type { OutboundRequest } from '../kernel/outbound.ts';
import { readmePlaces, readReadme } from './readmes.ts';

const bytesOf = (text: string) => new TextEncoder().encode(text);
const NPM = { registryType: 'npm', registryBaseUrl: 'https://npm.test', identifier: '@acme/files', version: '1.0.0' };
const REPOSITORY = { url: 'https://github.com/acme/files' };

function placesOf(more: object): readonly (readonly [string, string])[] {
  const read = readRegistryEntry({ name: 'com.acme/files', ...more });
  if (!read.ok) throw new Error(read.error);
  return readmePlaces(read.value).map(({ url, of }) => [url, of]);
}

describe('the places of a README', () => {
  test('are the packages, in the registry that the entry names, then the repository', () => {
    const pypi = {
      registryType: 'pypi',
      registryBaseUrl: 'https://pypi.test',
      identifier: 'Acme_Files',
      version: '2.0',
    };
    expect(placesOf({ packages: [NPM, pypi], repository: REPOSITORY })).toEqual([
      ['https://npm.test/@acme%2ffiles', 'the npm package @acme/files'],
      ['https://pypi.test/pypi/acme-files/2.0/json', 'the Python package Acme_Files'],
      ['https://raw.githubusercontent.com/acme/files/HEAD/README.md', 'the repository github.com/acme/files'],
    ]);
  });

  test.each([
    ['no registry', { packages: [{ ...NPM, registryBaseUrl: undefined }] }],
    ['another registry', { packages: [{ ...NPM, registryBaseUrl: 'https://evil.test' }] }],
    ['a registry without TLS', { packages: [{ ...NPM, registryBaseUrl: 'http://npm.test' }] }],
    ['a name that is none', { packages: [{ ...NPM, identifier: '../../secret' }] }],
    ['a file', { packages: [{ ...NPM, registryType: 'mcpb', identifier: 'https://npm.test/a.mcpb' }] }],
    ['an image', { packages: [{ ...NPM, registryType: 'oci', identifier: 'acme/files' }] }],
    ['another code host', { repository: { url: 'https://gitlab.test/acme/files' } }],
    ['a path that goes up', { repository: { url: 'https://github.com/acme/..' } }],
    ['more of a path', { repository: { url: 'https://github.com/acme/files/../../other/x' } }],
    ['a name with a query', { repository: { url: 'https://github.com/acme/a%2f..%2fb' } }],
    ['another user', { repository: { url: 'https://github.com@evil.test/acme/files' } }],
  ])('are none for %s', (_, more) => {
    expect(placesOf(more)).toEqual([]);
  });

  test.each(['https://github.com/acme/files.git', 'https://github.com/acme/files/', 'https://github.com/acme/files#x'])(
    'are the same for %s',
    (url) => expect(placesOf({ repository: { url } })[0]?.[0]).toContain('/acme/files/HEAD/'),
  );
});

const read = (body: string) => {
  const entry = readRegistryEntry({ name: 'com.acme/files', packages: [NPM] });
  const [place] = entry.ok ? readmePlaces(entry.value) : [];
  return place === undefined ? null : readReadme(place, bytesOf(body));
};

describe('a reply with a README', () => {
  test('is read from the package', () => {
    expect(read(JSON.stringify({ readme: '# Files<script>x</script>' }))).toEqual({
      text: '# Files',
      cut: false,
      of: 'the npm package @acme/files',
      host: 'npm.test',
    });
  });

  test.each([
    '',
    'no JSON',
    '[]',
    'null',
    '{}',
    '{"readme":5}',
    '{"readme":{"__proto__":"x"}}',
    '{"readme":"ERROR: No README data found!"}',
    '{"readme":"<!-- only a comment -->"}',
  ])('%j has none', (body) => {
    expect(read(body)).toBeNull();
  });
});

describe('GET /v1/marketplace/readmes/{registryId}', () => {
  let registry: RegistryServer;
  let control: InProcess;
  let clock: QuickClock;
  let lifetime: ProgramLifetime;
  const calls: OutboundRequest[] = [];
  let served: Readonly<Record<string, string>>;
  /** What a host without a README answers. */
  let missing: number;

  beforeEach(async () => {
    calls.length = 0;
    served = {};
    missing = 404;
    clock = new QuickClock();
    registry = await startRegistryServer({ entries: 1 });
    const server = { name: 'com.acme/files', version: '1.0.0', packages: [NPM], repository: REPOSITORY };
    registry.publish({ server, status: 'active', updatedAt: '2026-02-01T00:00:00Z' });
    lifetime = new ProgramLifetime((what, error) => {
      throw new Error(`deferred: ${what}`, { cause: error });
    });
    const toRegistry = nodeOutbound({ isLocal: true, pinned: new Map() });
    const outbound = {
      call: async (request: OutboundRequest) => {
        if (request.url.startsWith(registry.url)) return toRegistry.call(request);
        calls.push(request);
        const body = served[new URL(request.url).hostname];
        return ok({ status: body === undefined ? missing : 200, contentType: 'text/html', body: bytesOf(body ?? '') });
      },
    };
    control = await startInProcess({ clock, lifetime, outbound, registry: { url: registry.url } });
  });
  afterEach(async () => {
    lifetime.beginStop();
    await lifetime.drain();
    await control.stop();
    await registry.stop();
  });

  const PATH = '/v1/marketplace/readmes/com.acme%2Ffiles';

  test('asks the package first, once, as a stranger, with limits and without a credential', async () => {
    served = { 'npm.test': JSON.stringify({ readme: '# Files' }) };
    for (let time = 0; time < 2; time += 1) {
      const reply = await parseReply(marketplaceReadme, control.asUser('GET', PATH));
      expect(reply).toEqual({ text: '# Files', cut: false, of: 'the npm package @acme/files', host: 'npm.test' });
    }
    const limits = { maxReplyBytes: 4 * 1024 * 1024, timeoutMs: 5_000 };
    expect(calls).toMatchObject([{ url: 'https://npm.test/@acme%2ffiles', isStrangers: true, limits }]);
    expect(Object.keys(calls[0]?.headers ?? {}).toSorted()).toEqual(['accept', 'user-agent']);
  });

  test('asks the repository if the package has none, and says whose it is', async () => {
    served = { 'raw.githubusercontent.com': '# From the repository' };
    const reply = await parseReply(marketplaceReadme, control.asUser('GET', PATH));
    expect(reply).toMatchObject({ text: '# From the repository', of: 'the repository github.com/acme/files' });
  });

  test('says that there is none, and does not ask again for an hour', async () => {
    for (let time = 0; time < 2; time += 1) expect((await control.asUser('GET', PATH)).status).toBe(404);
    expect(calls).toHaveLength(2);
    expect((await control.asUser('GET', '/v1/marketplace/readmes/com.acme%2Fother')).status).toBe(404);
  });

  test('says that it cannot be read now if too many were read, and asks again a minute later', async () => {
    const { readmes } = control.context.registry;
    for (let n = 0; n < 60; n += 1) readmes.mayCall(clock.now());
    served = { 'npm.test': JSON.stringify({ readme: '# Files' }) };
    const refused = await control.asUser('GET', PATH);
    expect(refused.status).toBe(502);
    expect(await refused.text()).toMatch(/npm package @acme\/files cannot be read now.*try again in a minute/);
    expect(calls).toEqual([]);
    clock.move(60_000);
    expect((await control.asUser('GET', PATH)).status).toBe(200);
  });

  test.each([429, 503])(
    'says that it cannot be read now if a host answers %d, and asks again a minute later',
    async (status) => {
      missing = status;
      expect((await control.asUser('GET', PATH)).status).toBe(502);
      missing = 404;
      expect((await control.asUser('GET', PATH)).status).toBe(502);
      expect(calls).toHaveLength(2);
      clock.move(60_000);
      expect((await control.asUser('GET', PATH)).status).toBe(404);
    },
  );

  test('calls nobody for a visitor, and for a person who only opens the page', async () => {
    served = { 'npm.test': JSON.stringify({ readme: '# Files' }) };
    expect((await control.send(PATH)).status).toBe(401);
    const cookie = await openBrowserSession(control);
    const page = async (query: string, headers: Record<string, string>) =>
      (await control.inBrowser(`/marketplace/com.acme/files${query}`, { headers })).text();
    expect(await page('', { cookie })).toContain('Show its README');
    expect(await page('?readme=1', {})).not.toContain('# Files');
    expect(calls).toEqual([]);
    expect(await page('?readme=1', { cookie })).toContain('# Files');
  });
});
