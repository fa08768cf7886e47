import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { succeeds } from '../tools/system_parts.mjs';
import { Svc } from './support/svc.ts';
import { listen } from './support/tls_upstream.ts';

// What is served over http:// alone: package archives and services of an intranet. A session reaches it by name.

const ARCHIVE = 'deb.example.test';
const INTRANET = 'wiki.corp.test';
const BOUND = 'api.example.test';
const PACKAGE = Buffer.from('a package of a local archive\n'.repeat(1000));
const INDEX = [
  'Package: hello',
  'Version: 1.0',
  'Architecture: all',
  'Maintainer: Nobody <nobody@example.test>',
  'Filename: ./hello_1.0_all.deb',
  `Size: ${PACKAGE.length}`,
  `SHA256: ${createHash('sha256').update(PACKAGE).digest('hex')}`,
  'Description: says hello',
  '',
  '',
].join('\n');
const FILES: Readonly<Record<string, string | Buffer>> = {
  [`${ARCHIVE}/Packages`]: INDEX,
  [`${ARCHIVE}/hello_1.0_all.deb`]: PACKAGE,
  [`${INTRANET}/page?a=b`]: 'the page',
  [`${BOUND}/`]: 'must not be reached',
};
let server: Server;
let svc: Svc;
let folder: string;
let asked: { readonly line: string; readonly headers: readonly string[] }[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    const { method, url = '', headers, rawHeaders } = request;
    asked.push({ line: `${method} ${headers.host}${url}`, headers: rawHeaders });
    // apt writes this name with "./" as the source does.
    const found = FILES[`${headers.host}${url.replace('/./', '/')}`];
    response.writeHead(found === undefined ? 404 : 200).end(found ?? '');
  });
  const port = await listen(server);
  const resolve = [ARCHIVE, INTRANET, BOUND].map((host) => `http://${host}:127.0.0.1:${port}`);
  svc = await Svc.up({ resolve });
  folder = mkdtempSync(join(tmpdir(), 'svc-plain-http-'));
});
afterAll(async () => {
  await svc.stop();
  server.close();
});
beforeEach(() => {
  asked = [];
});

function curl(options: readonly string[], url: string): Promise<string> {
  const command = ['curl', '-sS', '-w', ' %{http_code}', url];
  return svc.ok(['run', ...options, '--', ...command], { cwd: folder });
}

async function eventsAt(host: string): ReturnType<Svc['events']> {
  return (await svc.events()).filter(({ data }) => data['svc.proxy.upstream.host'] === host);
}

describe('plain http', () => {
  it('is refused, and the refusal names the option that allows it', async () => {
    const got = await curl([], `http://${INTRANET}/page?a=b`);
    expect(got).toMatch(/non_connect_proxy_request[^]* 403$/);
    expect(got).toContain(`--plain-http ${INTRANET}`);
    expect(asked).toEqual([]);
  });

  it('reaches a host that was named for the run, and is recorded without its query', async () => {
    expect(await curl(['--plain-http', INTRANET], `http://${INTRANET}/page?a=b`)).toBe('the page 200');
    expect(asked.map(({ line }) => line)).toEqual([`GET ${INTRANET}/page?a=b`]);
    expect(asked[0]?.headers.join(' ')).not.toMatch(/proxy-/i);
    const passed = (await eventsAt(INTRANET)).filter(({ type }) => type === 'sandbox.proxy.passthrough');
    expect(passed).toMatchObject([
      {
        type: 'sandbox.proxy.passthrough',
        data: {
          'svc.proxy.source': 'transparent_plain_http',
          'svc.proxy.method': 'GET',
          'svc.proxy.upstream.path': '/page',
          'svc.proxy.upstream.status': 200,
        },
      },
    ]);
  });

  it('is refused to a bound host, whatever was named', async () => {
    await svc.secret('user/api', 'planted-secret-of-the-api');
    await svc.binding({ host: BOUND, scheme: 'bearer', credential_ref: 'vault://user/api' });
    expect(await curl(['--plain-http', BOUND], `http://${BOUND}/`)).toMatch(/plain_http_bound_host[^]* 403$/);
    expect(asked).toEqual([]);
  });

  it('reaches a host of the folder’s list, until it is removed from it', async () => {
    await svc.ok(['allow', '--plain-http', INTRANET, '--folder', folder]);
    expect(await curl([], `http://${INTRANET}/page?a=b`)).toBe('the page 200');
    await svc.ok(['allow', '--remove', '--plain-http', INTRANET, '--folder', folder]);
    expect(await curl([], `http://${INTRANET}/page?a=b`)).toMatch(/ 403$/);
  });
});

describe.skipIf(!succeeds('command -v apt-get'))('apt', () => {
  it('updates and downloads from an archive over http that the run names', async () => {
    const root = mkdtempSync(join(tmpdir(), 'svc-apt-'));
    for (const below of ['state/lists/partial', 'cache/archives/partial', 'etc']) {
      mkdirSync(join(root, below), { recursive: true });
    }
    writeFileSync(join(root, 'etc', 'sources.list'), `deb [trusted=yes] http://${ARCHIVE} ./\n`);
    writeFileSync(join(root, 'state', 'status'), '');
    const options = {
      'Dir::State': join(root, 'state'),
      'Dir::State::status': join(root, 'state', 'status'),
      'Dir::Cache': join(root, 'cache'),
      'Dir::Etc::sourcelist': join(root, 'etc', 'sources.list'),
      'Dir::Etc::sourceparts': '-',
      'APT::Sandbox::User': '',
      'Acquire::Languages': 'none',
      'Acquire::Retries': '0',
      'Acquire::http::Pipeline-Depth': '10',
    };
    const given = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
    const script = 'apt-get -q "$@" update; apt-get -q "$@" download hello';
    await svc.ok(['run', '--plain-http', ARCHIVE, '--', 'sh', '-ec', script, 'sh', ...given], { cwd: root });
    expect(readFileSync(join(root, 'hello_1.0_all.deb')).equals(PACKAGE)).toBe(true);
    const lines = asked.map(({ line }) => line);
    expect(lines).toContain(`GET ${ARCHIVE}/./Packages`);
    const paths = (await eventsAt(ARCHIVE)).map(({ data }) => data['svc.proxy.upstream.path']);
    expect(paths).toContain('/./hello_1.0_all.deb');
  });
});
