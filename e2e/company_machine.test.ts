import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { succeeds } from '../tools/system_parts.mjs';
import { type HostedControlPlane, startHostedControlPlane, startSidecar } from './runtimes/hosted_control_plane.ts';
import { run, type Running, until, waitForEnd } from './runtimes/programs.ts';
import {
  type CompanyNetwork,
  createCompanyNetwork,
  GATE,
  hasNetworkNamespaces,
  WORLD,
} from './support/company_network.ts';
import { SVC } from './support/program.ts';
import { PROXY_USER, SQUID } from './support/real_proxies.ts';
import { createTestCa } from './support/test_ca.ts';

// A machine that only a company's proxy connects to the world, where its control plane is too.

const CONTROL = 'control.example.test';
const HOST = 'api.example.test';
const TOKEN = 'planted-token-of-the-api';
const SENT = createHash('sha256').update(`Bearer ${TOKEN}`).digest('hex');
const SPEC = {
  schema_version: 1,
  connector: { fqn: 'acme/items', version: '1.0.0', title: 'Items' },
  hosts: [HOST],
  credential: { kind: 'api_key' },
  operations: [
    { name: 'list-items', method: 'GET', path: '/items', effect: 'read' },
    { name: 'delete-items', method: 'DELETE', path: '/items', effect: 'delete', approval: 'required' },
  ],
};
const installed = z.object({ id: z.string() });
const pending = z.object({ items: z.array(z.object({ id: z.string() })) });
const replied = z.object({ method: z.string(), httpVersion: z.string(), headers: z.record(z.string(), z.string()) });
const port = 3128;

const isHere = succeeds('command -v squid') && hasNetworkNamespaces();

describe.skipIf(!isHere)('a machine that only a proxy connects to the world and to its control plane', () => {
  let network: CompanyNetwork;
  let control: HostedControlPlane;
  let bridge: Server;
  let svc: (...args: string[]) => Running;
  const svcOk = (...args: string[]): Promise<string> => waitForEnd(svc(...args));

  beforeAll(async () => {
    network = await createCompanyNetwork([CONTROL, HOST]);
    const { folder } = network;
    control = await startHostedControlPlane(`https://${CONTROL}`);
    // The namespaces share the files of the machine, so its loopback is reached by a socket in a folder.
    const socket = join(folder, 'control.sock');
    bridge = createServer((client) => {
      const onward = connect(Number(new URL(control.url).port), '127.0.0.1');
      for (const [one, other] of [
        [client, onward],
        [onward, client],
      ] as const) {
        one.on('error', () => other.destroy());
        one.pipe(other);
      }
    });
    await new Promise<void>((resolve) => bridge.listen(socket, resolve));
    const ca = await createTestCa();
    const { cert, key } = await ca.issue([CONTROL, HOST]);
    const files = [join(folder, 'cert.pem'), join(folder, 'key.pem')] as const;
    writeFileSync(files[0], cert);
    writeFileSync(files[1], key);
    const server = join(import.meta.dirname, 'company_proxy', 'world_server.ts');
    await network.serve(process.execPath, [server, ...files, WORLD, CONTROL, socket], `${WORLD}:443`);
    const hostsFile = join(folder, 'hosts');
    writeFileSync(hostsFile, `${WORLD} ${CONTROL} ${HOST}\n`);
    const options = { folder, address: GATE, port, hostsFile, refused: 'refused.example.test' };
    await network.serve(...(await SQUID.prepare(options)), `${GATE}:${port}`);
    const env = {
      HTTPS_PROXY: `http://${PROXY_USER}:${encodeURIComponent(SQUID.password)}@${GATE}:${port}`,
      SVC_UPSTREAM_CA: ca.file,
    };
    svc = (...args) => run(...network.officeCommand(SVC, ['--home', join(folder, 'home'), ...args]), env);
  });
  afterAll(async () => {
    await control.stop();
    bridge.close();
    await network.close();
  });

  it('signs in, enrols a sidecar, runs agents with a credential, and an approval is decided', async () => {
    const login = svc('login', '--control', `https://${CONTROL}`, '--name', 'desk in an office');
    await control.approve(login);
    expect(await waitForEnd(login)).toContain(`signed in to https://${CONTROL}`);

    const connector = await svcOk('api', 'POST', '/v1/connectors', '--data', JSON.stringify(SPEC));
    const { id } = installed.parse(JSON.parse(connector));
    const key = JSON.stringify({ kind: 'api_key', value: TOKEN });
    await svcOk('api', 'PUT', `/v1/connectors/${id}/credential`, '--data', key);

    const sidecar = await startSidecar(svc);
    const ask = (...flags: string[]): Running => svc('run', '--', 'curl', '-sS', ...flags, `https://${HOST}/items`);
    for (const [flag, version] of [
      ['--http1.1', '1.1'],
      ['--http2', '2.0'],
    ] as const) {
      const reply = replied.parse(JSON.parse(await waitForEnd(ask(flag))));
      expect([reply.httpVersion, reply.headers['authorization']]).toEqual([version, SENT]);
    }

    const held = ask('-X', 'DELETE');
    const approval = await until(held, async () => {
      const { items } = pending.parse(JSON.parse(await svcOk('approvals', 'list', '--json')));
      return items[0]?.id ?? null;
    });
    await svcOk('approvals', 'approve', approval);
    const reply = replied.parse(JSON.parse(/\{.*\}/s.exec(await waitForEnd(held))?.[0] ?? ''));
    expect([reply.method, reply.headers['authorization']]).toEqual(['DELETE', SENT]);

    const events = await svcOk('audit', 'list', '--json', '--type', 'connector.proxy.proxied');
    expect(events.match(/delete-items/g)).not.toBeNull();
    await sidecar.stop();
  });
});
