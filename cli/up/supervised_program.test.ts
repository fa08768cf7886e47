import { describe, expect, test } from 'vitest';
import {
  START_TIMEOUT_MS,
  StartError,
  STOP_TIMEOUT_MS,
  SupervisedProgram,
  type ProgramExit,
  type ProgramHandle,
  type ProgramSpec,
  type SupervisorPort,
} from './supervised_program.ts';

/** A program that the test controls. */
class FakeProgram implements ProgramHandle {
  readonly pid: number;
  readonly port: number;
  readonly killed: string[] = [];
  readonly #obeys: boolean;
  readonly ready: Promise<string>;
  readonly exited: Promise<ProgramExit>;
  isReady: () => void = () => {};
  exit: (exit: ProgramExit) => void = () => {};

  constructor(pid: number, port: number, obeys: boolean) {
    this.pid = pid;
    this.port = port;
    this.#obeys = obeys;
    this.ready = new Promise((resolve) => {
      this.isReady = () => resolve(`http://127.0.0.1:${port === 0 ? 5555 : port}`);
    });
    this.exited = new Promise((resolve) => {
      this.exit = resolve;
    });
  }

  kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    this.killed.push(signal);
    if (this.#obeys || signal === 'SIGKILL') this.exit({ code: null, signal });
  }

  readLastWords(): readonly string[] {
    return [`last words of ${this.pid}`];
  }
}

/** A supervisor's environment with a fixed clock and waits that the test ends. */
class World implements SupervisorPort {
  readonly programs: FakeProgram[] = [];
  readonly notices: string[] = [];
  readonly waits: { readonly ms: number; readonly done: () => void }[] = [];
  obeys = true;
  nowMs = 0;
  changes = 0;
  isDiskFull = false;
  #onLaunch: (() => void) | null = null;
  #onWait: (() => void) | null = null;

  readonly spec: ProgramSpec = {
    name: 'sidecar',
    port: 0,
    launch: (port) => {
      const program = new FakeProgram(100 + this.programs.length, port, this.obeys);
      this.programs.push(program);
      this.#onLaunch?.();
      return program;
    },
  };

  notice(text: string): void {
    this.notices.push(text);
  }

  now(): number {
    return this.nowMs;
  }

  onChanged(): void {
    this.changes += 1;
    if (this.isDiskFull) throw new Error('ENOSPC');
  }

  delay(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve());
      this.waits.push({ ms, done: resolve });
      if (signal.aborted) resolve();
      this.#onWait?.();
    });
  }

  get last(): FakeProgram {
    const program = this.programs.at(-1);
    if (program === undefined) throw new Error('nothing was launched');
    return program;
  }

  async startProgram(): Promise<SupervisedProgram> {
    const starting = SupervisedProgram.start(this.spec, this);
    this.last.isReady();
    return starting;
  }

  /** Ends the next wait of this length. */
  async endWait(ms: number): Promise<void> {
    for (;;) {
      const wait = this.waits.find((candidate) => candidate.ms === ms);
      if (wait !== undefined) {
        this.waits.splice(this.waits.indexOf(wait), 1);
        wait.done();
        return;
      }
      await new Promise<void>((resolve) => {
        this.#onWait = resolve;
      });
    }
  }

  async launches(count: number): Promise<void> {
    while (this.programs.length < count) {
      await new Promise<void>((resolve) => {
        this.#onLaunch = resolve;
      });
    }
  }
}

describe('a supervised program', () => {
  test('is up when it reports its address', async () => {
    const world = new World();
    const program = await world.startProgram();
    expect(program).toMatchObject({ url: 'http://127.0.0.1:5555', pid: 100 });
    await program.stop();
    expect(world.last.killed).toEqual(['SIGTERM']);
    expect(world.notices).toEqual([]);
  });

  test('fails to start if it ends before it is ready: reported with its last log lines and not retried', async () => {
    const world = new World();
    const starting = SupervisedProgram.start(world.spec, world);
    world.last.exit({ code: 1, signal: null });
    const failure = await starting.catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(StartError);
    expect(failure).toMatchObject({
      message: 'the sidecar ended with exit status 1 before it was ready',
      lastWords: ['last words of 100'],
    });
    expect(world.programs).toHaveLength(1);
  });

  test('fails to start if it is not ready in time, and is ended', async () => {
    const world = new World();
    const starting = SupervisedProgram.start(world.spec, world).catch((error: unknown) => error);
    await world.endWait(START_TIMEOUT_MS);
    expect(await starting).toMatchObject({ message: 'the sidecar was not ready in time' });
    expect(world.last.killed).toEqual(['SIGTERM']);
  });

  test('is restarted on the same port after a crash, and its new process id is reported', async () => {
    const world = new World();
    const program = await world.startProgram();
    world.last.exit({ code: null, signal: 'SIGKILL' });
    await world.endWait(500);
    await world.launches(2);
    expect(world.last.port).toBe(5555);
    world.last.isReady();
    expect(program.pid).toBe(101);
    expect(world.changes).toBe(1);
    await program.stop();
    expect(world.notices[0]).toContain('was ended by SIGKILL; restarting in 0.5 s');
  });

  test('is restarted also if its new process id cannot be written down, which is reported', async () => {
    const world = new World();
    const program = await world.startProgram();
    world.isDiskFull = true;
    for (const launches of [2, 3]) {
      world.last.exit({ code: 1, signal: null });
      await world.endWait(launches === 2 ? 500 : 1_000);
      await world.launches(launches);
      world.last.isReady();
    }
    expect(program.pid).toBe(102);
    await program.stop();
    const what = 'the new process id of the sidecar could not be written down: Error: ENOSPC';
    expect(world.notices.filter((each) => each === what)).toHaveLength(2);
  });

  test('backs off longer after each quick crash, and resets after running for a while', async () => {
    const world = new World();
    const program = await world.startProgram();
    let count = 1;
    const dieAfter = async (ranMs: number, expectedWait: number): Promise<void> => {
      world.nowMs += ranMs;
      world.last.exit({ code: 1, signal: null });
      await world.endWait(expectedWait);
      count += 1;
      await world.launches(count);
      world.last.isReady();
    };
    await dieAfter(0, 500);
    await dieAfter(0, 1_000);
    await dieAfter(0, 2_000);
    await dieAfter(0, 2_000);
    await dieAfter(60_000, 500);
    expect(world.programs).toHaveLength(6);
    await program.stop();
  });

  test('is retried if a restart fails', async () => {
    const world = new World();
    const program = await world.startProgram();
    world.last.exit({ code: 1, signal: null });
    await world.endWait(500);
    await world.launches(2);
    world.last.exit({ code: 98, signal: null });
    await world.endWait(1_000);
    await world.launches(3);
    world.last.isReady();
    expect(world.notices).toContain('the sidecar said: last words of 101');
    await program.stop();
  });

  test('that does not start again is retried more and more rarely', async () => {
    const world = new World();
    const program = await world.startProgram();
    world.last.exit({ code: 1, signal: null });
    for (const [index, wait] of [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000].entries()) {
      await world.endWait(wait);
      await world.launches(index + 2);
      world.last.exit({ code: 98, signal: null });
    }
    expect(world.programs).toHaveLength(9);
    await program.stop();
  });

  test('is killed if it does not stop when asked', async () => {
    const world = new World();
    world.obeys = false;
    const program = await world.startProgram();
    const stopping = program.stop();
    await world.endWait(STOP_TIMEOUT_MS);
    await stopping;
    expect(world.last.killed).toEqual(['SIGTERM', 'SIGKILL']);
  });

  test('stays down if stopped while waiting for a restart', async () => {
    const world = new World();
    const program = await world.startProgram();
    world.last.exit({ code: 1, signal: null });
    await program.stop();
    expect(world.programs).toHaveLength(1);
  });

  test('is not started after Ctrl-C', async () => {
    const world = new World();
    const stop = new AbortController();
    const starting = SupervisedProgram.start(world.spec, world, stop.signal).catch((error: unknown) => error);
    stop.abort();
    expect(await starting).toBeInstanceOf(StartError);
    expect(world.last.killed).toEqual(['SIGTERM']);
  });
});
