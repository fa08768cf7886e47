/** Work that a reply does not wait for, with what it is, for the log. It may fail without anybody being told but the log. */
export type Defer = (what: string, work: () => Promise<unknown>) => void;

/** How long what serves a call is there. */
export interface Lifetime {
  /** Does work after the reply. Whoever ends the program waits for it: nothing deferred is lost to an orderly stop. */
  readonly defer: Defer;
  /** Aborted when the program is asked to stop: calls that wait for something answer at once with what there is. */
  readonly stopping: AbortSignal;
}

/** Told of deferred work that failed. */
export type OnFailure = (what: string, error: unknown) => void;

/** The lifetime of a program that serves every request (Node, Deno): what is deferred is drained when it stops. */
export class ProgramLifetime implements Lifetime {
  readonly #stop = new AbortController();
  readonly #onFailure: OnFailure;
  readonly #running = new Set<Promise<void>>();

  constructor(onFailure: OnFailure) {
    this.#onFailure = onFailure;
  }

  get stopping(): AbortSignal {
    return this.#stop.signal;
  }

  readonly defer: Defer = (what, work) => {
    const done = settled(what, work, this.#onFailure).finally(() => this.#running.delete(done));
    this.#running.add(done);
  };

  /** Tells those who wait that the program stops. */
  beginStop(): void {
    this.#stop.abort();
  }

  /** Resolves when nothing deferred is left, also of what that defers. */
  async drain(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}

/** The lifetime of one request on a platform that keeps it until `waitUntil` is done, and never asks it to stop. */
export function requestLifetime(waitUntil: (work: Promise<void>) => void, onFailure: OnFailure): Lifetime {
  return {
    defer: (what, work) => waitUntil(settled(what, work, onFailure)),
    stopping: new AbortController().signal,
  };
}

async function settled(what: string, work: () => Promise<unknown>, onFailure: OnFailure): Promise<void> {
  try {
    await work();
  } catch (error) {
    onFailure(what, error);
  }
}

/** Aborted when the client has gone or the program stops: the end of a call that waits. */
export function endOfWait(request: Request, lifetime: Pick<Lifetime, 'stopping'>): AbortSignal {
  return AbortSignal.any([request.signal, lifetime.stopping]);
}
