import type { Readable, Writable } from 'node:stream';
import { z } from 'zod';

const message = z.object({
  id: z.number().optional(),
  sessionId: z.string().optional(),
  method: z.string().optional(),
  params: z.unknown().optional(),
  result: z.unknown().optional(),
  error: z.object({ message: z.string() }).optional(),
});
type Message = z.infer<typeof message>;

interface Waiting {
  readonly method: string;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** Hears the events of one target. */
export type EventListener = (method: string, params: unknown) => void;

/** Chromium's DevTools protocol over a pair of pipes: JSON messages, each with a zero byte behind it. */
export class DevTools {
  readonly #output: Writable;
  readonly #waiting = new Map<number, Waiting>();
  readonly #listeners = new Map<string, EventListener>();
  #lastId = 0;
  #rest = '';

  constructor(input: Readable, output: Writable) {
    this.#output = output;
    input.setEncoding('utf8');
    input.on('data', (text: string) => this.#take(text));
    input.on('close', () => this.#end());
    output.on('error', () => this.#end());
  }

  /** Hears what happens in an attached target from now on. */
  listen(sessionId: string, listener: EventListener): void {
    this.#listeners.set(sessionId, listener);
  }

  /** Calls a method, of a target or of the browser; throws when it is refused or the browser is gone. */
  async call<T>(schema: z.ZodType<T>, method: string, params: object = {}, sessionId?: string): Promise<T> {
    const id = (this.#lastId += 1);
    const result = new Promise((resolve, reject) => this.#waiting.set(id, { method, resolve, reject }));
    this.#output.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return schema.parse(await result);
  }

  #take(text: string): void {
    const parts = (this.#rest + text).split('\0');
    this.#rest = parts.pop() ?? '';
    for (const part of parts) this.#deliver(message.parse(JSON.parse(part)));
  }

  #deliver({ id, sessionId, method, params, result, error }: Message): void {
    if (id === undefined) {
      if (method !== undefined) this.#listeners.get(sessionId ?? '')?.(method, params);
      return;
    }
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve(result);
    else waiting?.reject(new Error(`${waiting.method}: ${error.message}`));
  }

  #end(): void {
    for (const { method, reject } of this.#waiting.values()) reject(new Error(`${method}: the browser is gone`));
    this.#waiting.clear();
  }
}
