import {
  type ClientCapabilities,
  type InputRequests,
  type LoggingLevel,
  type Notification,
  type Progress,
  type ProgressToken,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { InputCall } from '../fronts/downstream.ts';
import { SecondLimit } from '../servers/second_limit.ts';

/** A client's open request. A call may take several requests, each carrying the input that was asked for. */
export interface CallRound {
  /** Sends a notification that belongs to the request. */
  notify(notification: Notification): Promise<void>;
  readonly progressToken: ProgressToken | undefined;
  readonly signal: AbortSignal;
}

/** The client that makes a call. */
export interface CallOwner {
  /** One per connection of a client; without a connection, one per call. */
  readonly clientKey: string;
  readonly capabilities: ClientCapabilities;
  /** Whether it wants messages of this level. */
  wantsLog(level: LoggingLevel): boolean;
}

type CallStep =
  | { readonly kind: 'done'; readonly result: Result }
  | { readonly kind: 'input'; readonly requests: InputRequests };

/** Why the gateway ended a call. */
export class CallEnded extends Error {
  readonly why: 'cancelled' | 'timeout';

  constructor(why: 'cancelled' | 'timeout') {
    super(why === 'timeout' ? 'the server gave no answer in time' : 'the call was cancelled');
    this.why = why;
  }
}

interface Asked {
  readonly call: InputCall;
  readonly resolve: (answer: Record<string, unknown>) => void;
  readonly reject: (error: Error) => void;
  isForwarded: boolean;
}

const MOST_ASKED = 16;
const MOST_PROGRESS_PER_SECOND = 50;

/**
 * A request to a downstream server on behalf of a client. If the server asks the client for something meanwhile, the client
 * receives it as required input, and the call continues with the client's next request. This works with either protocol
 * generation on both sides.
 */
export class ActiveCall {
  readonly owner: CallOwner;
  readonly #abort = new AbortController();
  readonly #asked = new Map<string, Asked>();
  readonly #silentMs: number;
  #result: Promise<CallStep>;
  #round: CallRound | null = null;
  #wake = Promise.withResolvers<void>();
  #count = 0;
  #timer: NodeJS.Timeout | null = null;
  readonly #progressLimit = new SecondLimit(MOST_PROGRESS_PER_SECOND);

  /** `send` sends the request; it is cancelled when its signal is aborted. */
  constructor(owner: CallOwner, silentMs: number, send: (signal: AbortSignal) => Promise<Result>) {
    this.owner = owner;
    this.#silentMs = silentMs;
    this.#result = send(this.#abort.signal).then(
      (result): CallStep => ({ kind: 'done', result }),
      (error: unknown) => {
        throw this.#abort.signal.reason instanceof CallEnded ? this.#abort.signal.reason : error;
      },
    );
    void this.#result.catch(() => undefined).then(() => this.#rejectAsked());
  }

  /** Resolves with the result, or with the input that the client must provide. Rejects with the request's error. */
  async runRound(round: CallRound): Promise<CallStep> {
    this.#round = round;
    this.#listenForSilence();
    const cancel = (): void => this.end('cancelled');
    round.signal.addEventListener('abort', cancel, { once: true });
    if (round.signal.aborted) cancel();
    try {
      while (true) {
        const requests = this.#takeUnforwarded();
        if (requests !== null) return { kind: 'input', requests };
        const woken = this.#wake.promise.then(() => null);
        const step = await Promise.race([this.#result, woken]);
        if (step !== null) return step;
      }
    } finally {
      round.signal.removeEventListener('abort', cancel);
      this.#round = null;
    }
  }

  /** Passes on the client's answers. A missing answer counts as not answered. */
  answer(responses: Readonly<Record<string, unknown>> | undefined): void {
    for (const [key, asked] of this.#asked) {
      if (!asked.isForwarded) continue;
      this.#asked.delete(key);
      const answer = responses?.[key];
      if (typeof answer === 'object' && answer !== null) asked.resolve({ ...answer });
      else asked.reject(new ProtocolError(ProtocolErrorCode.InvalidRequest, 'the client gave no answer'));
    }
  }

  /** Asks the client of this call. Rejects if the client does not support the request or the call has ended. */
  ask(call: InputCall, gone: AbortSignal): Promise<Record<string, unknown>> {
    const missing = findMissingCapability(call, this.owner.capabilities);
    if (missing !== null) {
      return Promise.reject(
        new ProtocolError(ProtocolErrorCode.MethodNotFound, `the client of this call does not support ${missing}`),
      );
    }
    if (this.#abort.signal.aborted || this.#asked.size >= MOST_ASKED) {
      return Promise.reject(new ProtocolError(ProtocolErrorCode.InvalidRequest, 'the call cannot ask for more input'));
    }
    const key = `input-${(this.#count += 1)}`;
    return new Promise((resolve, reject) => {
      const withdraw = (): void => {
        this.#asked.delete(key);
        reject(new ProtocolError(ProtocolErrorCode.InvalidRequest, 'the request was withdrawn'));
      };
      gone.addEventListener('abort', withdraw, { once: true });
      this.#asked.set(key, { call, resolve, reject, isForwarded: false });
      this.#rouse();
    });
  }

  /** Reports progress to the client, if it asked for that, with a rate limit. */
  reportProgress(progress: Progress): void {
    this.#listenForSilence();
    const token = this.#round?.progressToken;
    if (token === undefined || !this.#progressLimit.allow()) return;
    this.notify({ method: 'notifications/progress', params: { ...progress, progressToken: token } });
  }

  /** Sends the client a notification that belongs to this call; dropped while the call waits for the client. */
  notify(notification: Notification): void {
    this.#round?.notify(notification).catch(() => undefined);
  }

  end(why: 'cancelled' | 'timeout'): void {
    this.#abort.abort(new CallEnded(why));
  }

  #takeUnforwarded(): InputRequests | null {
    const waiting = [...this.#asked].filter(([, asked]) => !asked.isForwarded);
    if (waiting.length === 0) return null;
    this.#stopTimer();
    for (const [, asked] of waiting) asked.isForwarded = true;
    return z.custom<InputRequests>().parse(Object.fromEntries(waiting.map(([key, { call }]) => [key, call])));
  }

  #rouse(): void {
    const { resolve } = this.#wake;
    this.#wake = Promise.withResolvers<void>();
    resolve();
  }

  #listenForSilence(): void {
    this.#stopTimer();
    if (this.#asked.size > 0 || this.#abort.signal.aborted) return;
    this.#timer = setTimeout(() => this.end('timeout'), this.#silentMs);
    this.#timer.unref();
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #rejectAsked(): void {
    this.#stopTimer();
    for (const { reject } of this.#asked.values()) {
      reject(new ProtocolError(ProtocolErrorCode.InvalidRequest, 'the call is over'));
    }
    this.#asked.clear();
  }
}

/** The capability that the client of a call lacks for a request; null if it has it. */
export function findMissingCapability({ method, params }: InputCall, can: ClientCapabilities): string | null {
  if (method === 'sampling/createMessage') return can.sampling === undefined ? 'sampling' : null;
  if (method === 'roots/list') return can.roots === undefined ? 'roots' : null;
  if (can.elicitation === undefined) return 'elicitation';
  if (params['mode'] === 'url') return can.elicitation.url === undefined ? 'elicitation by URL' : null;
  const onlyUrl = can.elicitation.url !== undefined && can.elicitation.form === undefined;
  return onlyUrl ? 'elicitation by form' : null;
}
