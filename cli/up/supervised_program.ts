/** How a program ended. */
export interface ProgramExit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** A started program. `ready` resolves to its URL once it listens. It never rejects: if the program ends first, `exited` settles. */
export interface ProgramHandle {
  readonly pid: number;
  readonly ready: Promise<string>;
  readonly exited: Promise<ProgramExit>;
  kill(signal: 'SIGTERM' | 'SIGKILL'): void;
  /** The last lines of its log, for a person. */
  readLastWords(): readonly string[];
}

/** A program to keep running. */
export interface ProgramSpec {
  /** `control plane` or `sidecar`. */
  readonly name: string;
  /** 0 means any free port; a restart reuses the same one. */
  readonly port: number;
  launch(port: number): ProgramHandle;
}

export interface SupervisorPort {
  notice(text: string): void;
  /** Waits; resolves immediately if the signal is aborted. */
  delay(ms: number, signal: AbortSignal): Promise<void>;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Called when the program runs under a new process id. If it throws, the program is kept running nevertheless. */
  onChanged(): void;
}

/** An old or a busy machine takes many times the second that a start takes. */
export const START_TIMEOUT_MS = 60_000;
export const STOP_TIMEOUT_MS = 5_000;
const FIRST_BACKOFF_MS = 500;
/** For a program that does not start. */
const LONGEST_BACKOFF_MS = 30_000;
/** For one that ran: agents wait for it. */
const LONGEST_BACKOFF_OF_RUNNING_MS = 2_000;
/** If a program ran this long before it crashed, the backoff is reset. */
const STEADY_MS = 60_000;

/** A program that did not start, with its last log lines. */
export class StartError extends Error {
  readonly lastWords: readonly string[];

  constructor(message: string, lastWords: readonly string[]) {
    super(message);
    this.name = 'StartError';
    this.lastWords = lastWords;
  }
}

/** Keeps one program running: restarts it on the same port after a crash, until it is stopped. */
export class SupervisedProgram {
  readonly #spec: ProgramSpec;
  readonly #port: SupervisorPort;
  readonly #stopping = new AbortController();
  #handle: ProgramHandle;
  #loop: Promise<void> = Promise.resolve();
  readonly url: string;

  private constructor(spec: ProgramSpec, port: SupervisorPort, handle: ProgramHandle, url: string) {
    this.#spec = spec;
    this.#port = port;
    this.#handle = handle;
    this.url = url;
  }

  /** Starts the program; throws {@link StartError} if it ends or times out before it listens. */
  static async start(spec: ProgramSpec, port: SupervisorPort, stop?: AbortSignal): Promise<SupervisedProgram> {
    const handle = spec.launch(spec.port);
    const begun = await waitForFirstWord(handle, port, stop);
    if (begun.kind !== 'ready') {
      await end(handle, port);
      throw new StartError(`the ${spec.name} ${begun.problem}`, handle.readLastWords());
    }
    const program = new SupervisedProgram(spec, port, handle, begun.url);
    program.#loop = program.#keepRunning();
    return program;
  }

  get pid(): number {
    return this.#handle.pid;
  }

  /** Ends the program: SIGTERM, then SIGKILL after a few seconds. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await end(this.#handle, this.#port);
    await this.#loop;
  }

  async #keepRunning(): Promise<void> {
    const port = Number(new URL(this.url).port);
    let backoff = FIRST_BACKOFF_MS;
    let began = this.#port.now();
    let ran = true;
    while (!this.#stopping.signal.aborted) {
      const exit = await this.#handle.exited;
      if (this.#stopping.signal.aborted) return;
      if (this.#port.now() - began >= STEADY_MS) backoff = FIRST_BACKOFF_MS;
      if (ran) backoff = Math.min(backoff, LONGEST_BACKOFF_OF_RUNNING_MS);
      this.#port.notice(`the ${this.#spec.name} ${exitText(exit)}; restarting in ${backoff / 1000} s`);
      await this.#port.delay(backoff, this.#stopping.signal);
      if (this.#stopping.signal.aborted) return;
      backoff = Math.min(backoff * 2, LONGEST_BACKOFF_MS);
      began = this.#port.now();
      ran = await this.#startAgain(port);
    }
  }

  /** True if it is ready. */
  async #startAgain(port: number): Promise<boolean> {
    this.#handle = this.#spec.launch(port);
    try {
      this.#port.onChanged();
    } catch (error) {
      this.#port.notice(`the new process id of the ${this.#spec.name} could not be written down: ${String(error)}`);
    }
    const begun = await waitForFirstWord(this.#handle, this.#port, this.#stopping.signal);
    if (begun.kind === 'ready') {
      this.#port.notice(`the ${this.#spec.name} is running again on ${begun.url} (process ${this.#handle.pid})`);
      return true;
    }
    const said = this.#handle.readLastWords().at(-1);
    if (!this.#stopping.signal.aborted && said !== undefined) this.#port.notice(`the ${this.#spec.name} said: ${said}`);
    await end(this.#handle, this.#port);
    return false;
  }
}

type FirstWord =
  | { readonly kind: 'ready'; readonly url: string }
  | { readonly kind: 'failed'; readonly problem: string };

async function waitForFirstWord(handle: ProgramHandle, port: SupervisorPort, stop?: AbortSignal): Promise<FirstWord> {
  const settled = new AbortController();
  const waited = stop === undefined ? settled.signal : AbortSignal.any([settled.signal, stop]);
  const first = await Promise.race<FirstWord>([
    handle.ready.then((url) => ({ kind: 'ready', url })),
    handle.exited.then((exit) => ({ kind: 'failed', problem: `${exitText(exit)} before it was ready` })),
    port.delay(START_TIMEOUT_MS, waited).then(() => ({ kind: 'failed', problem: 'was not ready in time' })),
  ]);
  settled.abort();
  return first;
}

async function end(handle: ProgramHandle, port: SupervisorPort): Promise<void> {
  handle.kill('SIGTERM');
  const gone = new AbortController();
  const exited = handle.exited.then(() => gone.abort());
  await Promise.race([exited, port.delay(STOP_TIMEOUT_MS, gone.signal)]);
  if (!gone.signal.aborted) handle.kill('SIGKILL');
  await exited;
}

function exitText(exit: ProgramExit): string {
  return exit.signal === null ? `ended with exit status ${exit.code}` : `was ended by ${exit.signal}`;
}
