import {
  deserializeMessage,
  type JSONRPCMessage,
  serializeMessage,
  type Transport,
} from '@modelcontextprotocol/client';
import type { GatewayLimits } from '../gateway_limits.ts';
import { LineSplitter } from '../fronts/line_splitter.ts';
import type { ServerProcess } from './server_process.ts';

type TransportLimits = Pick<
  GatewayLimits,
  'maxMessageBytes' | 'maxGarbageBytes' | 'maxGarbageLines' | 'maxBytesPerSecond' | 'maxMessagesPerSecond' | 'stopMs'
>;

/** The number of windows into which one second's output limit is divided. */
const WINDOWS_PER_SECOND = 20;
/** Maximum number of messages read but not yet delivered. */
const MOST_QUEUED = 2_000;

/**
 * The SDK's stdio framing over our own process. The SDK's transport is not used, because it starts the process in our process
 * group and reads without a rate limit. `pid` and `stderr` tell the SDK that this is stdio.
 */
export class ProcessTransport implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: ((message: JSONRPCMessage) => void) | undefined;
  readonly stderr = null;
  readonly #process: ServerProcess;
  readonly #limits: TransportLimits;
  readonly #lines: LineSplitter;
  /** Called once if the server is ended because of its output. */
  readonly #onFault: (message: string) => void;
  readonly #queue: string[] = [];
  #isDelivering = false;
  #closed = false;
  #garbageBytes = 0;
  #garbageLines = 0;
  #windowBytes = 0;
  #windowMessages = 0;
  #windowEndsAt = 0;

  constructor(process: ServerProcess, limits: TransportLimits, onFault: (message: string) => void) {
    this.#process = process;
    this.#limits = limits;
    this.#lines = new LineSplitter(limits.maxMessageBytes);
    this.#onFault = onFault;
  }

  get pid(): number {
    return this.#process.pid;
  }

  start(): Promise<void> {
    const { stdout, stdin } = this.#process.child;
    stdout.on('data', (chunk: Uint8Array) => this.#read(chunk));
    stdout.on('error', () => undefined);
    stdin.on('error', () => undefined);
    void this.#process.ended.then(() => this.#closeAfterOutput());
    return Promise.resolve();
  }

  send(message: JSONRPCMessage): Promise<void> {
    const { stdin } = this.#process.child;
    if (this.#closed || !stdin.writable) return Promise.reject(new Error('the server has ended'));
    if (stdin.writableLength > this.#limits.maxMessageBytes) {
      return Promise.reject(new Error('the server does not read its input'));
    }
    stdin.write(serializeMessage(message));
    return Promise.resolve();
  }

  async close(): Promise<void> {
    await this.#process.stop(this.#limits.stopMs);
    this.#markClosed();
  }

  /** Output written before the end is still delivered. */
  async #closeAfterOutput(): Promise<void> {
    while (this.#isDelivering) await waitForTurn();
    this.#markClosed();
  }

  #markClosed(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.onclose?.();
  }

  #read(chunk: Uint8Array): void {
    if (this.#closed) return;
    const lines = this.#lines.push(chunk);
    if (lines === null) {
      return this.#endForFault(`it wrote a message of more than ${this.#limits.maxMessageBytes} bytes`);
    }
    this.#limitRate(chunk.length, lines.length);
    for (const line of lines) this.#queue.push(line);
    if (!this.#isDelivering && this.#queue.length > 0) void this.#deliver();
  }

  /**
   * Delivers messages one at a time. The SDK handles a notification asynchronously but a response immediately: progress that
   * arrives together with its result would be lost. So the message after a notification waits for a turn.
   */
  async #deliver(): Promise<void> {
    this.#isDelivering = true;
    while (this.#queue.length > 0) {
      const lines = this.#queue.splice(0);
      for (const [index, line] of lines.entries()) {
        const isNotification = this.#line(line);
        if (isNotification && index < lines.length - 1) await waitForTurn();
      }
    }
    this.#isDelivering = false;
  }

  /** Whether it is a notification. */
  #line(line: string): boolean {
    if (line.trim() === '' || this.#closed) return false;
    const message = messageOf(line);
    if (message === null) {
      this.#countGarbage(line.length);
      return false;
    }
    this.onmessage?.(message);
    return 'method' in message && !('id' in message);
  }

  /** Tolerates a few lines that are not messages, such as log output; more ends the server. */
  #countGarbage(bytes: number): void {
    this.#garbageBytes += bytes;
    this.#garbageLines += 1;
    const { maxGarbageBytes, maxGarbageLines } = this.#limits;
    if (this.#garbageBytes > maxGarbageBytes || this.#garbageLines > maxGarbageLines) {
      this.#endForFault('it repeatedly wrote text that is not an MCP message to its standard output');
    }
  }

  /** If a window's limit is exceeded, stops reading until the window ends, so that a flood slows only its sender. */
  #limitRate(bytes: number, messages: number): void {
    const now = performance.now();
    if (now >= this.#windowEndsAt) {
      this.#windowEndsAt = now + 1000 / WINDOWS_PER_SECOND;
      this.#windowBytes = 0;
      this.#windowMessages = 0;
    }
    this.#windowBytes += bytes;
    this.#windowMessages += messages;
    const { maxBytesPerSecond, maxMessagesPerSecond } = this.#limits;
    const share = Math.max(
      this.#windowBytes / (maxBytesPerSecond / WINDOWS_PER_SECOND),
      this.#windowMessages / (maxMessagesPerSecond / WINDOWS_PER_SECOND),
      this.#queue.length / MOST_QUEUED,
    );
    if (share > 1) this.#pause((share * 1000) / WINDOWS_PER_SECOND);
  }

  #pause(ms: number): void {
    const { stdout } = this.#process.child;
    stdout.pause();
    this.#windowEndsAt = 0;
    setTimeout(() => stdout.resume(), ms).unref();
  }

  #endForFault(message: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#onFault(message);
    void this.#process.stop(0).then(() => this.onclose?.());
  }
}

function waitForTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function messageOf(line: string): JSONRPCMessage | null {
  if (!line.trimStart().startsWith('{')) return null;
  try {
    return deserializeMessage(line);
  } catch {
    return null;
  }
}
