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

/** The windows that a second's allowance of output is dealt out in. */
const WINDOWS_PER_SECOND = 20;
/** Messages that were read and not yet delivered. */
const MOST_QUEUED = 2_000;

/**
 * The SDK's stdio framing over a process of ours. The SDK's own transport starts the process itself, in our process group
 * and without a limit to how fast it is read, so it is not used. `pid` and `stderr` tell the SDK that this is stdio.
 */
export class ProcessTransport implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: ((message: JSONRPCMessage) => void) | undefined;
  readonly stderr = null;
  readonly #process: ServerProcess;
  readonly #limits: TransportLimits;
  readonly #lines: LineSplitter;
  /** Called once when the server is ended for what it printed. */
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
    void this.#process.ended.then(() => this.#ended());
    return Promise.resolve();
  }

  send(message: JSONRPCMessage): Promise<void> {
    const { stdin } = this.#process.child;
    if (this.#closed || !stdin.writable) return Promise.reject(new Error('the server has ended'));
    if (stdin.writableLength > this.#limits.maxMessageBytes) {
      return Promise.reject(new Error('the server does not read what it is sent'));
    }
    stdin.write(serializeMessage(message));
    return Promise.resolve();
  }

  async close(): Promise<void> {
    await this.#process.stop(this.#limits.stopMs);
    this.#gone();
  }

  /** What it said before it ended is heard. */
  async #ended(): Promise<void> {
    while (this.#isDelivering) await nextTurn();
    this.#gone();
  }

  #gone(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.onclose?.();
  }

  #read(chunk: Uint8Array): void {
    if (this.#closed) return;
    const lines = this.#lines.push(chunk);
    if (lines === null) {
      return this.#fault(`it wrote a message of more than ${this.#limits.maxMessageBytes} bytes`);
    }
    this.#allow(chunk.length, lines.length);
    for (const line of lines) this.#queue.push(line);
    if (!this.#isDelivering && this.#queue.length > 0) void this.#deliver();
  }

  /**
   * One message after the other. The SDK handles a notification a moment after it got it, and a response at once: progress
   * that came in one piece with its result would be lost. So what follows a notification waits for that moment.
   */
  async #deliver(): Promise<void> {
    this.#isDelivering = true;
    while (this.#queue.length > 0) {
      const lines = this.#queue.splice(0);
      for (const [index, line] of lines.entries()) {
        const isNotification = this.#line(line);
        if (isNotification && index < lines.length - 1) await nextTurn();
      }
    }
    this.#isDelivering = false;
  }

  /** Whether it is a notification. */
  #line(line: string): boolean {
    if (line.trim() === '' || this.#closed) return false;
    const message = messageOf(line);
    if (message === null) {
      this.#garbage(line.length);
      return false;
    }
    this.onmessage?.(message);
    return 'method' in message && !('id' in message);
  }

  /** A line or two that somebody's logger put there does no harm; the protocol has no room for more. */
  #garbage(bytes: number): void {
    this.#garbageBytes += bytes;
    this.#garbageLines += 1;
    const { maxGarbageBytes, maxGarbageLines } = this.#limits;
    if (this.#garbageBytes > maxGarbageBytes || this.#garbageLines > maxGarbageLines) {
      this.#fault('it wrote text that is no MCP message to its standard output, again and again');
    }
  }

  /** Stops reading until the window is over when more came than a window allows, so that a flood costs the flooder. */
  #allow(bytes: number, messages: number): void {
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

  #fault(message: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#onFault(message);
    void this.#process.stop(0).then(() => this.onclose?.());
  }
}

function nextTurn(): Promise<void> {
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
