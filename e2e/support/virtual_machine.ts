import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { z } from 'zod';

/** An engine as svc sees it whose containers run in a virtual machine, such as that of Docker Desktop. */
export interface VirtualMachine {
  readonly endpoint: string;
  /** Cuts every connection that was taken over from HTTP, as a machine that is stopped does. */
  cutStreams(): void;
  /** The number of such connections. */
  streams(): number;
  close(): Promise<void>;
}

const KERNEL = '6.10.14-linuxkit';
const record = z.record(z.string(), z.unknown());

/**
 * Stands before an engine of this machine, at a socket of its own. It passes every call on, but names another kernel, and as the
 * processes of containers ones of its own machine: nothing of theirs is found by their numbers here.
 */
export async function startVirtualMachine(engineSocket: string, socket: string): Promise<VirtualMachine> {
  const taken = new Set<Socket>();
  const server = createServer((call, reply) => passOn(engineSocket, call, reply));
  server.on('upgrade', (call: IncomingMessage, near: Socket, head: Buffer) => {
    const far = connect({ path: engineSocket, allowHalfOpen: true });
    for (const end of [near, far]) {
      taken.add(end);
      end.on('error', () => undefined).on('close', () => taken.delete(end));
    }
    near.on('close', () => far.destroy());
    far.on('close', () => near.destroy());
    far.write(headOf(call));
    far.write(head);
    near.pipe(far);
    far.pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  return {
    endpoint: `unix://${socket}`,
    cutStreams: () => [...taken].forEach((end) => end.destroy()),
    streams: () => taken.size / 2,
    close: async () => {
      server.closeAllConnections();
      for (const end of taken) end.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function headOf({ method, url, rawHeaders }: IncomingMessage): string {
  const lines = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${rawHeaders[at + 1]}`] : []));
  return [`${method} ${url} HTTP/1.1`, ...lines, '', ''].join('\r\n');
}

function passOn(socketPath: string, call: IncomingMessage, reply: ServerResponse): void {
  const { method, url: path = '/', headers } = call;
  const onward = request({ socketPath, method, path, headers, agent: false }, (answer) => {
    const change = changeOf(path);
    if (change === null || answer.statusCode !== 200) {
      reply.writeHead(answer.statusCode ?? 502, answer.headers);
      reply.flushHeaders();
      answer.pipe(reply);
      return;
    }
    void answerChanged(answer, reply, change);
  });
  onward.on('error', () => reply.destroy());
  reply.on('close', () => onward.destroy());
  call.pipe(onward);
}

async function answerChanged(answer: IncomingMessage, reply: ServerResponse, change: Change): Promise<void> {
  const body = await buffer(answer);
  const text = JSON.stringify(change(record.parse(JSON.parse(body.toString()))));
  reply.writeHead(200, { 'content-type': 'application/json' }).end(text);
}

type Change = (body: Record<string, unknown>) => object;

/** What of a reply tells where the engine is. */
function changeOf(path: string): Change | null {
  if (/^(\/v[\d.]+)?\/(info|version)$/.test(path)) return (body) => ({ ...body, KernelVersion: KERNEL });
  if (!/^(\/v[\d.]+)?\/containers\/[^/]+\/json$/.test(path)) return null;
  return (body) => {
    const state = record.parse(body['State']);
    // Process 1 runs here too, and is no container's.
    return { ...body, State: { ...state, Pid: state['Running'] === true ? 1 : 0 } };
  };
}
