import type { ChildProcess } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { succeeds } from '../../tools/system_parts.mjs';
import { type Finished, run, type RunOptions, runOk, start } from './program.ts';
import { waitFor } from './wait_for.ts';

/** True if this user can make network namespaces. */
export const hasNetworkNamespaces = (): boolean => {
  const name = `svc-try-${process.pid}`;
  return succeeds(`ip netns add ${name} && ip netns del ${name}`);
};

/** The world's address as the office sees it: the proxies listen there. */
export const GATE = '192.0.2.1';
const DESK = '192.0.2.2';
/** Where the world's hosts are; the office has no route to it. */
export const WORLD = '203.0.113.10';

/**
 * Two network namespaces: in `office` a developer works, and its only neighbour is the gate of `world`, where the proxies
 * and the hosts of the internet are. The office has no other route and resolves no name of the world.
 */
export interface CompanyNetwork {
  readonly folder: string;
  /** Runs a program at the developer's desk. */
  office(command: string, args: readonly string[], options?: RunOptions): Promise<Finished>;
  /** The command that starts a program there. */
  readonly officeCommand: (command: string, args: readonly string[]) => readonly [string, readonly string[]];
  /** Starts a program in the world, and waits until this address accepts connections there. */
  serve(command: string, args: readonly string[], at: string): Promise<ChildProcess>;
  close(): Promise<void>;
}

export async function createCompanyNetwork(hosts: readonly string[]): Promise<CompanyNetwork> {
  const [world, office] = [`svc-world-${process.pid}`, `svc-office-${process.pid}`];
  const [inWorld, inOffice] = [`vw${process.pid}`, `vo${process.pid}`];
  // The programs of the world may run as other users, who cannot enter the temporary folder of the tests.
  const folder = mkdtempSync('/run/svc-company-');
  chmodSync(folder, 0o755);
  const children: ChildProcess[] = [];
  for (const name of [world, office]) {
    mkdirSync(`/etc/netns/${name}`, { recursive: true });
    const own = name === world ? hosts.map((host) => `${WORLD} ${host}\n`).join('') : '';
    writeFileSync(`/etc/netns/${name}/hosts`, `127.0.0.1 localhost\n::1 localhost\n${own}`);
    // Nobody answers there.
    writeFileSync(`/etc/netns/${name}/resolv.conf`, 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n');
  }
  const setup = [
    ['netns', 'add', world],
    ['netns', 'add', office],
    ['link', 'add', inWorld, 'netns', world, 'type', 'veth', 'peer', 'name', inOffice, 'netns', office],
    ['-n', world, 'addr', 'add', `${GATE}/30`, 'dev', inWorld],
    ['-n', world, 'addr', 'add', `${WORLD}/32`, 'dev', 'lo'],
    ['-n', office, 'addr', 'add', `${DESK}/30`, 'dev', inOffice],
    ...[world, office].map((name) => ['-n', name, 'link', 'set', 'lo', 'up']),
    ['-n', world, 'link', 'set', inWorld, 'up'],
    ['-n', office, 'link', 'set', inOffice, 'up'],
  ];
  for (const args of setup) await runOk('ip', args);
  const officeCommand: CompanyNetwork['officeCommand'] = (command, args) => [
    'ip',
    ['netns', 'exec', office, command, ...args],
  ];
  return {
    folder,
    office: (command, args, options) => run(...officeCommand(command, args), options),
    officeCommand,
    serve: async (command, args, at) => {
      const child = start('ip', ['netns', 'exec', world, command, ...args]);
      children.push(child);
      let output = '';
      for (const stream of [child.stdout, child.stderr])
        stream?.on('data', (chunk: Buffer) => (output += String(chunk)));
      const [host = '', port = ''] = at.split(':');
      const probe = `ip netns exec ${world} bash -c 'exec 3<>/dev/tcp/${host}/${port}'`;
      await waitFor(`${command} to listen on ${at}`, () => {
        if (child.exitCode !== null) throw new Error(`${command} ended (${child.exitCode}): ${output}`);
        return succeeds(probe);
      });
      return child;
    },
    close: async () => {
      for (const child of children) child.kill('SIGTERM');
      for (const child of children) {
        await waitFor('a server of the world to end', () => child.exitCode !== null || child.signalCode !== null);
      }
      for (const name of [world, office]) {
        await run('ip', ['netns', 'del', name]);
        rmSync(`/etc/netns/${name}`, { recursive: true, force: true });
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
