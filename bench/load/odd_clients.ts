/** A program: slow clients and clients that disconnect without notice, repeatedly, through a proxy. Settings: see `start_odd_clients.ts`. */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { oddClientsSettings, type OddClientsSettings } from './start_odd_clients.ts';
import { readSettings } from './programs.ts';

const EVENT_CLIENTS = 20;
const SLOW_READERS = 8;
const VANISHING_CLIENTS = 12;

function pickBetween(least: number, most: number): number {
  return least + Math.random() * (most - least);
}

function connectHead(host: string, authorization: string): string {
  return `CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}:443\r\nProxy-Authorization: ${authorization}\r\n\r\n`;
}

function requestHead(host: string, path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
}

function dial(settings: OddClientsSettings): Socket {
  const socket = connect(settings.proxyPort, '127.0.0.1');
  socket.on('error', () => undefined);
  return socket;
}

/** Half of those that disconnect do so with a reset. */
function leave(socket: Socket): void {
  if (Math.random() < 0.5) socket.resetAndDestroy();
  else socket.destroy();
}

interface Tunnel {
  readonly raw: Socket;
  readonly tls: TLSSocket;
}

class Clients {
  readonly #settings: OddClientsSettings;
  readonly #ca: string;

  constructor(settings: OddClientsSettings) {
    this.#settings = settings;
    this.#ca = readFileSync(settings.caFile, 'utf8');
  }

  /** A tunnel with TLS in it; null if the proxy opened none. */
  open(host: string): Promise<Tunnel | null> {
    const raw = dial(this.#settings);
    raw.write(connectHead(host, this.#settings.authorization));
    return new Promise((resolve) => {
      raw.once('close', () => resolve(null));
      raw.once('data', () => {
        const tls = connectTls({ socket: raw, servername: host, ca: this.#ca });
        tls.on('error', () => raw.destroy());
        tls.once('secureConnect', () => resolve({ raw, tls }));
      });
    });
  }

  /** Listens to server-sent events for some seconds, like a client of a model. */
  async listen(): Promise<void> {
    const { eventsHost } = this.#settings;
    const tunnel = await this.open(eventsHost);
    if (tunnel === null) return;
    tunnel.tls.on('data', () => undefined);
    tunnel.tls.write(requestHead(eventsHost, '/events'));
    await wait(pickBetween(1_000, 10_000));
    leave(tunnel.raw);
  }

  /** Reads a large reply more slowly than it arrives, and disconnects before its end. */
  async readSlowly(): Promise<void> {
    const host = Math.random() < 0.5 ? this.#settings.bulkHost : this.#settings.credentialedHost;
    const tunnel = await this.open(host);
    if (tunnel === null) return;
    tunnel.tls.on('data', () => {
      tunnel.tls.pause();
      setTimeout(() => tunnel.tls.resume(), 20);
    });
    tunnel.tls.write(requestHead(host, '/bulk'));
    await wait(pickBetween(5_000, 15_000));
    leave(tunnel.raw);
  }

  /** Sends a part of a client's data, up to a random stage, and disconnects. */
  async vanish(): Promise<void> {
    const { credentialedHost: host, authorization } = this.#settings;
    const stage = Math.floor(pickBetween(0, 6));
    const head = connectHead(host, authorization);
    const starts: readonly string[] = [
      '',
      head.slice(0, pickBetween(1, head.length)),
      head,
      `${head}\x16\x03\x01\x02\x00\x01`,
    ];
    const start = starts[stage];
    if (start !== undefined) {
      const raw = dial(this.#settings);
      raw.write(Buffer.from(start, 'latin1'));
      await wait(pickBetween(0, 300));
      return leave(raw);
    }
    const tunnel = await this.open(host);
    if (tunnel === null) return;
    const request = requestHead(host, stage === 4 ? '/small' : '/bulk');
    tunnel.tls.write(stage === 4 ? request.slice(0, -2) : request);
    await wait(pickBetween(0, 300));
    leave(tunnel.raw);
  }
}

async function forever(act: () => Promise<void>): Promise<never> {
  for (;;) {
    await act();
    await wait(pickBetween(10, 50));
  }
}

async function main(): Promise<void> {
  const clients = new Clients(await readSettings(oddClientsSettings));
  process.on('SIGTERM', () => process.exit(0));
  const kinds: readonly (readonly [number, () => Promise<void>])[] = [
    [EVENT_CLIENTS, () => clients.listen()],
    [SLOW_READERS, () => clients.readSlowly()],
    [VANISHING_CLIENTS, () => clients.vanish()],
  ];
  await Promise.all(kinds.flatMap(([count, act]) => Array.from({ length: count }, () => forever(act))));
}

await main();
