/** Work that a reply does not wait for, with a name for the log. If it fails, only the log shows it. */
type Defer = (what: string, work: () => Promise<unknown>) => void;

/** The lifetime of the program or request that serves a call. */
export interface Lifetime {
  /** Runs work after the reply. An orderly shutdown waits for it, so no deferred work is lost. */
  readonly defer: Defer;
  /** Aborted when the program is asked to stop: waiting calls then answer at once with what they have. */
  readonly stopping: AbortSignal;
}

/** Receives the error of deferred work that failed. */
type FailureListener = (what: string, error: unknown) => void;

/** The lifetime of a program that serves all requests (Node, Deno). Deferred work is drained when it stops. */
export class ProgramLifetime implements Lifetime {
  readonly #stop = new AbortController();
  readonly #onFailure: FailureListener;
  readonly #running = new Set<Promise<void>>();

  constructor(onFailure: FailureListener) {
    this.#onFailure = onFailure;
  }

  get stopping(): AbortSignal {
    return this.#stop.signal;
  }

  readonly defer: Defer = (what, work) => {
    const done = settle(what, work, this.#onFailure).finally(() => this.#running.delete(done));
    this.#running.add(done);
  };

  /** Aborts `stopping`. */
  beginStop(): void {
    this.#stop.abort();
  }

  /** Resolves when no deferred work is left, including work that deferred work defers. */
  async drain(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}

/** The lifetime of one request on a platform that keeps it until `waitUntil` is done and never asks it to stop. */
export function requestLifetime(waitUntil: (work: Promise<void>) => void, onFailure: FailureListener): Lifetime {
  return {
    defer: (what, work) => waitUntil(settle(what, work, onFailure)),
    stopping: new AbortController().signal,
  };
}

async function settle(what: string, work: () => Promise<unknown>, onFailure: FailureListener): Promise<void> {
  try {
    await work();
  } catch (error) {
    onFailure(what, error);
  }
}

/** Aborted when the client disconnects or the program stops: a waiting call then ends. */
export function endOfWait(request: Request, lifetime: Pick<Lifetime, 'stopping'>): AbortSignal {
  return AbortSignal.any([request.signal, lifetime.stopping]);
}
