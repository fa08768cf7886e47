import type { ChildProcess } from 'node:child_process';
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { Transform, type TransformCallback } from 'node:stream';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { ContainerStreams, RuntimeFailure } from './container_runtime.ts';
import { checkDockerEndpoint, programFailure, refusedFailure } from './docker_endpoint.ts';
import { unixSocketPath } from './engine_socket.ts';

const HEADER_BYTES = 8;
const STDOUT = 1;
const MAX_SAID = 500;
const TIMEOUT_MS = 60_000;

/**
 * Attaches to a container's first process by Docker's API, before it is started so that no output is missed. The connection is
 * taken over: what is written to it is the program's input, whose end is the end of the connection.
 */
export async function attachStreams(
  endpoint: string,
  id: string,
  timeoutMs = TIMEOUT_MS,
): Promise<Result<ContainerStreams, RuntimeFailure>> {
  const socketPath = unixSocketPath(endpoint);
  const path = `/containers/${encodeURIComponent(id)}/attach?stream=1&stdin=1&stdout=1&stderr=1`;
  try {
    if (socketPath === null) throw new Error('no Unix socket');
    const { socket, head } = await takeOver(socketPath, path, timeoutMs);
    const output = new ProgramOutput();
    if (head.length > 0) socket.unshift(head);
    socket.on('error', (error) => output.destroy(error));
    socket.on('close', () => output.destroy());
    output.on('close', () => socket.destroy());
    socket.pipe(output);
    return ok({ input: socket, output, said: () => output.said });
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (error.name === 'TimeoutError')
      return err(programFailure('docker', { reason: 'timeout', message: error.message }));
    const state = await checkDockerEndpoint(endpoint);
    return err(state.ok ? refusedFailure(error.message) : state.error);
  }
}

/** The same by the engine's program, which was started with pipes. */
export function streamsOf(child: ChildProcess): ContainerStreams {
  const { stdin: input, stdout: output, stderr } = child;
  if (input === null || output === null || stderr === null) throw new Error('its streams are not pipes');
  let said = '';
  stderr.setEncoding('latin1').on('data', (text: string) => (said = (said + text).slice(-MAX_SAID)));
  child.on('error', (error) => output.destroy(error));
  output.on('close', () => input.destroy());
  return { input, output, said: () => said };
}

interface TakenOver {
  readonly socket: Socket;
  readonly head: Buffer;
}

function takeOver(socketPath: string, path: string, timeoutMs: number): Promise<TakenOver> {
  return new Promise((resolve, reject) => {
    const headers = { connection: 'Upgrade', upgrade: 'tcp' };
    const call = request({ socketPath, method: 'POST', path, headers, agent: false });
    // The time is that of the engine's answer. What is taken over lasts as long as the session.
    const timer = setTimeout(() => call.destroy(new DOMException('no answer in time', 'TimeoutError')), timeoutMs);
    call.on('close', () => clearTimeout(timer));
    call.on('upgrade', (_reply, socket, head) => {
      clearTimeout(timer);
      resolve({ socket, head });
    });
    call.on('response', (reply) => {
      reply.destroy();
      reject(new Error(`status ${reply.statusCode ?? 0}`));
    });
    call.on('error', reject);
    call.end();
  });
}

/** The standard output in Docker's frames: the stream (1 byte), 3 bytes of zero, the length (4), and the bytes. Of the other stream the end is kept. */
class ProgramOutput extends Transform {
  said = '';
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  #left = 0;

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    for (let at = 0; at < chunk.length;) {
      if (this.#left > 0) {
        const part = chunk.subarray(at, at + this.#left);
        at += part.length;
        this.#left -= part.length;
        this.#passOn(part);
      } else {
        const copied = chunk.copy(this.#header, this.#headerBytes, at, at + HEADER_BYTES - this.#headerBytes);
        at += copied;
        this.#headerBytes = (this.#headerBytes + copied) % HEADER_BYTES;
        if (this.#headerBytes === 0) this.#left = this.#header.readUInt32BE(4);
      }
    }
    done();
  }

  #passOn(part: Buffer): void {
    if (this.#header.readUInt8(0) === STDOUT) this.push(part);
    else this.said = (this.said + part.toString('latin1')).slice(-MAX_SAID);
  }
}
