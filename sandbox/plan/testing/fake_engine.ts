import { ChildProcess } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { err, ok } from '../../../shared/model/result.ts';
import type { ContainerRuntime, ContainerSpec, ExecSpec } from '../../engine/container_runtime.ts';
import { PLAIN_PATH_SCRIPT, READY_SCRIPT, SWEEP_SCRIPT } from '../process_sweep.ts';

export const CONTAINER_ID = 'c'.repeat(64);

/** A program that a test ends when it likes. */
export class FakeChild extends ChildProcess {
  override readonly stdin = new PassThrough();
  override readonly stdout = new PassThrough();
  override readonly stderr = new PassThrough();
  readonly signals: unknown[] = [];

  override kill(signal?: NodeJS.Signals | number): boolean {
    this.signals.push(signal);
    this.end(137);
    return true;
  }

  end(code: number, stdout: string | Buffer = '', stderr = ''): void {
    this.stdout.end(stdout);
    this.stderr.end(stderr);
    setImmediate(() => this.emit('close', code));
  }
}

function throwUnused(): never {
  throw new Error('not used by plans');
}

/** What a step's command does: it gets its child and ends it. */
type StepBehaviour = (child: FakeChild, spec: ExecSpec) => void;

/** An engine with one container, whose steps do what the test says; every call is written down. */
export class FakeEngine {
  readonly log: string[] = [];
  readonly created: ContainerSpec[] = [];
  readonly steps: ExecSpec[] = [];
  /** Steps that were started and have not ended: a sweep ends them. */
  readonly #running = new Set<FakeChild>();
  behaviour: StepBehaviour = (child) => child.end(0);
  /** What sweeps say is left, one after the other; then nothing is. */
  left: (number | 'broken' | 'dead')[] = [];
  kinds: Readonly<Record<string, string>> = {};
  createFails = false;
  /** Called before a step's command runs; false: the engine cannot run it. */
  starts: () => boolean = () => true;

  get runtime(): ContainerRuntime {
    return {
      program: 'docker',
      endpoint: 'unix:///run/fake.sock',
      inspectImage: throwUnused,
      makeEmptyImage: throwUnused,
      create: (spec) => {
        this.log.push('create');
        this.created.push(spec);
        if (!this.createFails) return Promise.resolve(ok(CONTAINER_ID));
        return Promise.resolve(err({ reason: 'engine_refused', message: 'no room', fixes: [] }));
      },
      start: throwUnused,
      signal: (_id, name) => this.#logCall(name),
      startWithStreams: throwUnused,
      startDetached: () => this.#logCall('start'),
      inspect: () => Promise.resolve(ok(null)),
      pidOf: () => Promise.resolve(ok(4711)),
      runProbe: throwUnused,
      exec: (_id, spec) => this.#exec(spec),
      remove: () => this.#logCall('remove'),
      logs: throwUnused,
      wait: throwUnused,
      listByLabel: throwUnused,
      host: throwUnused,
      gatewayOf: throwUnused,
    };
  }

  #logCall(what: string): Promise<ReturnType<typeof ok<undefined>>> {
    this.log.push(what);
    return Promise.resolve(ok(undefined));
  }

  #exec(spec: ExecSpec): FakeChild {
    const child = new FakeChild();
    const [, , script = ''] = spec.command;
    if (script === READY_SCRIPT) child.end(0, 'ready\n');
    else if (script === SWEEP_SCRIPT) this.#sweep(child);
    else if (script === PLAIN_PATH_SCRIPT) child.end(0, `${this.kinds[spec.command.at(-1) ?? ''] ?? 'plain'}\n`);
    else this.#step(child, spec);
    return child;
  }

  #sweep(child: FakeChild): void {
    this.log.push('sweep');
    for (const one of this.#running) one.end(137);
    const left = this.left.shift() ?? 0;
    if (left === 'broken') child.end(1, '', 'exec failed');
    else if (left === 'dead') child.end(0, 'left 0 dead 3\n');
    else child.end(0, `left ${left} dead 0\n`);
  }

  #step(child: FakeChild, spec: ExecSpec): void {
    // What begins a step says so first, and becomes its command.
    const [runner = '', dashes = '', _shell, _option, _script, mark = '', ...words] = spec.command;
    const step = { ...spec, command: [runner, dashes, ...words] };
    this.log.push(`exec ${words.join(' ')}`);
    this.steps.push(step);
    this.#running.add(child);
    child.once('close', () => this.#running.delete(child));
    if (!this.starts()) {
      child.end(126, '', 'OCI runtime exec failed\n');
      return;
    }
    child.stderr.write(`${mark}\n`);
    this.behaviour(child, step);
  }
}
