import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { succeeds } from '../tools/system_parts.mjs';
import {
  type CompanyNetwork,
  createCompanyNetwork,
  GATE,
  hasNetworkNamespaces,
  WORLD,
} from './support/company_network.ts';
import { entriesUnder } from './support/files_under.ts';
import { sampleOf } from './support/full_counts.ts';
import { type Finished, SVC } from './support/program.ts';
import { PROXY_USER, SQUID, TINYPROXY } from './support/real_proxies.ts';
import { createTestCa, type TestCa } from './support/test_ca.ts';

// Only a proxy with a password reaches the world, by two that companies use.

const HOST = 'api.example.test';
const OTHER = 'other.example.test';
const PINNED = 'pinned.example.test';
const ITEMS = `https://${HOST}/items?a=b`;
const TOKEN = 'planted-token-of-the-api';
const CLIENTS = join(import.meta.dirname, 'company_proxy');

const isHere = succeeds('command -v squid && command -v tinyproxy') && hasNetworkNamespaces();

describe.skipIf(!isHere)('a machine that only a proxy connects to the world', () => {
  let network: CompanyNetwork;
  let ca: TestCa;

  beforeAll(async () => {
    network = await createCompanyNetwork([HOST, OTHER, PINNED]);
    ca = await createTestCa();
    const { cert, key } = await ca.issue([HOST, OTHER, PINNED]);
    const files = [join(network.folder, 'cert.pem'), join(network.folder, 'key.pem')] as const;
    writeFileSync(files[0], cert);
    writeFileSync(files[1], key);
    await network.serve(process.execPath, [join(CLIENTS, 'world_server.ts'), ...files, WORLD], `${WORLD}:443`);
  });
  afterAll(() => network.close());

  it('reaches nothing without it', async () => {
    const direct = await network.office('curl', ['-sSk', '--max-time', '5', `https://${WORLD}/`]);
    expect(direct.stderr).toMatch(/Couldn't connect|Failed to connect|timed out/);
    const named = await network.office('curl', ['-sSk', '--max-time', '5', `https://${HOST}/`]);
    expect(named.stderr).toContain('Could not resolve host');
  });

  const proxies = [
    { ...SQUID, port: 3128 },
    { ...TINYPROXY, port: 3129 },
  ];
  describe.each(sampleOf(proxies, 1))('$name', ({ name, port, password, prepare }) => {
    const url = `http://${PROXY_USER}:${encodeURIComponent(password)}@${GATE}:${port}`;
    let home: string;
    /** What svc printed, for the search for the password. */
    let printed = '';

    const svc = async (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Finished> => {
      const options = { env: { SVC_HOME: home, HTTPS_PROXY: url, ...env } };
      const done = await network.office(SVC, args, options);
      printed += done.stdout + done.stderr;
      return done;
    };
    const svcOk = async (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> => {
      const done = await svc(args, env);
      expect([args[0], done.code, done.stderr]).toEqual([args[0], 0, expect.anything()]);
      return done.stdout;
    };

    beforeAll(async () => {
      home = join(network.folder, name);
      const hostsFile = join(network.folder, 'hosts');
      writeFileSync(hostsFile, `${WORLD} ${HOST} ${OTHER} ${PINNED}\n`);
      const proxy = await prepare({ folder: network.folder, address: GATE, port, hostsFile, refused: OTHER });
      await network.serve(...proxy, `${GATE}:${port}`);
      await svcOk(['up', '--detach', '--control-port', '0', '--proxy-port', '0', '--upstream-ca', ca.file]);
      const set = ['secret', 'set', 'user/demo', '--stdin'];
      await network.office(SVC, set, { env: { SVC_HOME: home }, input: TOKEN });
      await svcOk(['binding', 'add', HOST, '--scheme', 'bearer', '--credential', 'vault://user/demo']);
    });
    afterAll(async () => {
      await svc(['down', '--yes']);
    });

    const clients: readonly [name: string, version: string, command: readonly string[]][] = [
      ['curl', '1.1', ['curl', '-sS', '--http1.1', ITEMS]],
      ['curl', '2.0', ['curl', '-sS', '--http2', ITEMS]],
      ['Node fetch', '1.1', ['node', '-e', `fetch('${ITEMS}').then((r) => r.text()).then(console.log)`]],
      ['python', '1.1', ['python3', '-c', `import urllib.request as u; print(u.urlopen('${ITEMS}').read().decode())`]],
    ];
    it.each(sampleOf(clients, 2))(
      'carries a request of %s over HTTP/%s, with its credential',
      async (_, version, command) => {
        const printedReply = await svcOk(['run', '--', ...command]);
        const reply: { url: string; httpVersion: string; headers: Record<string, string> } = JSON.parse(printedReply);
        const sent = createHash('sha256').update(`Bearer ${TOKEN}`).digest('hex');
        expect([reply.url, reply.httpVersion, reply.headers['authorization']]).toEqual(['/items?a=b', version, sent]);
        expect(Object.keys(reply.headers).filter((header) => /proxy|via|forwarded/.test(header))).toEqual([]);
      },
    );

    it('carries a WebSocket', async () => {
      const run = ['run', '--', 'python3', join(CLIENTS, 'websocket.py'), HOST];
      expect(await svcOk(run)).toBe('hello\n');
    });

    it('carries a connection to a host that is not intercepted', async () => {
      const pinned = ['run', '--', 'curl', '-sS', '--cacert', ca.file, `https://${PINNED}/unread`];
      const before = await svc(pinned);
      expect(before.code).not.toBe(0);
      expect(before.stderr).toContain(`svc tunnel add ${PINNED}`);
      await svcOk(['tunnel', 'add', PINNED]);
      expect(JSON.parse(await svcOk(pinned))).toMatchObject({ url: '/unread' });
      const events = await svcOk(['audit', 'list', '--json', '--type', 'sandbox.proxy.tunnelled']);
      expect(events).toMatch(/tunnel_closed[^]*tunnel_opened/);
      expect(events).not.toContain('/unread');
    });

    it('does not show the proxy to the command', async () => {
      const environment = await svcOk(['run', '--', 'env']);
      expect(environment).not.toMatch(new RegExp(`${GATE}|pl@nted|pl%40nted|planted-word`));
    });

    it('tells what it refuses as the reason of the request', async () => {
      const body = await svcOk(['run', '--', 'curl', '-sS', '-w', '%{http_code}', `https://${OTHER}/`]);
      expect(body).toContain('502');
      expect(body).toContain('upstream_proxy_failed');
      expect(body).toContain('the upstream proxy does not allow this connection (403)');
    });

    it('is tried by doctor, and a wrong password is told as one', async () => {
      const right = await svc(['doctor'], { SVC_REGISTRY_URL: `https://${HOST}` });
      expect(right.stdout).toMatch(new RegExp(`upstream proxy\thttp://${GATE}:${port}`));
      expect(right.stdout).toContain(`opens connections, tried with ${HOST}:443`);
      const wrong = await svc(['doctor'], { HTTPS_PROXY: url.replace('word@', 'wrong@') });
      expect(wrong.stdout).toMatch(/does not accept the user name and password \(40[17]\)/);
    });

    it('has its password in no log, message, event or process list', async () => {
      const secret = new RegExp(
        `pl@nted|pl%40nted|planted-word|${Buffer.from(`${PROXY_USER}:${password}`).toString('base64')}`,
      );
      printed += await svcOk(['status', '--json']);
      printed += await svcOk(['audit', 'list', '--json']);
      printed += (await network.office('sh', ['-c', 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " "'])).stdout;
      expect(printed.match(secret)?.[0]).toBeUndefined();
      const files = [...entriesUnder(home)].filter((entry) => entry.isFile());
      const paths = files.map(({ parentPath, name: file }) => join(parentPath, file));
      expect(paths.filter((path) => secret.test(readFileSync(path, 'latin1')))).toEqual([]);
    });
  });
});
