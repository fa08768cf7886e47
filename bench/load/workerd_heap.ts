import { once } from 'node:events';
import { z } from 'zod';

/** The size of a worker's heap, in MiB. */
export interface HeapUse {
  /** The current size, including garbage. */
  readonly usedMib: number;
  /** The size after a garbage collection. */
  readonly liveMib: number;
}

const MIB = 1024 ** 2;
const REPLY_MS = 30_000;
const targets = z.tuple([z.object({ webSocketDebuggerUrl: z.string() })]);
const answer = z.object({ id: z.number(), result: z.unknown() });
const usage = z.object({ usedSize: z.number(), backingStorageSize: z.number().default(0) });

/** The inspector of one worker: it speaks the DevTools protocol over a WebSocket. */
export class WorkerInspector {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (result: unknown) => void>();
  #last = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => {
      const parsed = answer.safeParse(JSON.parse(String(data)));
      if (parsed.success) this.#waiting.get(parsed.data.id)?.(parsed.data.result);
    });
  }

  static async open(port: number): Promise<WorkerInspector> {
    const [target] = targets.parse(await (await fetch(`http://127.0.0.1:${port}/json`)).json());
    const socket = new WebSocket(target.webSocketDebuggerUrl);
    await once(socket, 'open', { signal: AbortSignal.timeout(REPLY_MS) });
    const inspector = new WorkerInspector(socket);
    await inspector.#call('HeapProfiler.enable');
    return inspector;
  }

  /** Text, objects and buffers of the worker. */
  async usedMib(): Promise<number> {
    const { usedSize, backingStorageSize } = usage.parse(await this.#call('Runtime.getHeapUsage'));
    return (usedSize + backingStorageSize) / MIB;
  }

  /** `ask` makes the worker answer a request: it collects garbage only while it runs. */
  async heap(ask: () => Promise<unknown>): Promise<HeapUse> {
    const usedMib = await this.usedMib();
    await Promise.all([this.#call('HeapProfiler.collectGarbage'), ask()]);
    return { usedMib, liveMib: await this.usedMib() };
  }

  close(): void {
    this.#socket.close();
  }

  async #call(method: string): Promise<unknown> {
    const id = (this.#last += 1);
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const timer = setTimeout(() => reject(new Error(`the inspector does not answer ${method}`)), REPLY_MS);
    this.#waiting.set(id, resolve);
    this.#socket.send(JSON.stringify({ id, method }));
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(id);
    }
  }
}
