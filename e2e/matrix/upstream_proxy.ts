import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { succeeds } from '../../tools/system_parts.mjs';
import { freePort } from '../support/free_port.ts';
import { start } from '../support/program.ts';
import { PROXY_USER, type RealProxy } from '../support/real_proxies.ts';
import { waitFor } from '../support/wait_for.ts';

/** True if this user can give a program a hosts file of its own, and take port 443. */
export const canRunProxies = (): boolean =>
  succeeds('command -v squid && command -v tinyproxy && unshare --mount true');

/** A proxy with a password, which alone knows where the services are. */
export interface UpstreamProxy {
  /** With the user and the password. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts the proxy; `ports` are those of the services, by their names. */
export async function startUpstreamProxy(
  { name, password, prepare }: RealProxy,
  ports: ReadonlyMap<string, number>,
): Promise<UpstreamProxy> {
  // The proxies run as other users, who cannot enter the temporary folder of the tests.
  const folder = mkdtempSync('/run/svc-matrix-');
  chmodSync(folder, 0o755);
  const fronts: Server[] = [];
  const lines: string[] = [];
  for (const [host, port] of ports) {
    const address = `127.${(process.pid >> 8) % 256}.${process.pid % 256}.${fronts.length + 2}`;
    fronts.push(await startFront(address, port));
    lines.push(`${address} ${host}\n`);
  }
  const hostsFile = join(folder, 'hosts');
  writeFileSync(hostsFile, lines.join(''));
  const address = '127.0.0.1';
  const port = await freePort();
  const command = await prepare({ folder, address, port, hostsFile, refused: 'refused.example.test' });
  const withHosts = 'mount --bind "$1" /etc/hosts && shift && exec "$@"';
  const child = start('unshare', ['--mount', 'sh', '-c', withHosts, 'sh', hostsFile, command[0], ...command[1]]);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (output += String(chunk)));
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  const stop = async (): Promise<void> => {
    if (hasEnded()) return;
    child.kill('SIGTERM');
    await waitFor(`${name} to end`, hasEnded);
    for (const front of fronts) front.close();
    rmSync(folder, { recursive: true, force: true });
  };
  await waitFor(`${name} to listen`, () => {
    if (hasEnded()) throw new Error(`${name} ended: ${output}`);
    return succeeds(`bash -c 'exec 3<>/dev/tcp/${address}/${port}'`);
  });
  return { url: `http://${PROXY_USER}:${encodeURIComponent(password)}@${address}:${port}`, stop };
}

/** Carries connections to port 443 of an address to a service. */
function startFront(address: string, port: number): Promise<Server> {
  const front = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const service = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    client.pipe(service).pipe(client);
    client.on('error', () => service.destroy());
    service.on('error', () => client.destroy());
  });
  return new Promise((resolve, reject) => {
    front.once('error', reject);
    front.listen(443, address, () => resolve(front));
  });
}
