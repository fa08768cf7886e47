import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { type Finished, type RunOptions, start, SVC } from '../support/program.ts';
import type { ContainerWorld } from './container_world.ts';

/** A step as `plan.yaml` has it; JSON is YAML. */
interface StepInput {
  readonly id: string;
  readonly command: readonly string[];
  readonly trust?: {
    readonly effect: string;
    readonly hosts: readonly string[];
    readonly credential?: string;
    readonly scopes?: readonly string[];
  };
  readonly mounts?: readonly object[];
  readonly collect?: readonly { readonly path: string; readonly as?: string }[];
  readonly timeout_seconds?: number;
}

const stepRecord = z.object({
  id: z.string(),
  outcome: z.string(),
  exit_code: z.number().nullable(),
  problem: z.string().nullable(),
  reached: z.array(z.object({ host: z.string(), requests: z.number(), refused: z.string().nullable() })).nullable(),
  collected: z.array(z.object({ as: z.string(), bytes: z.number() })),
});
const planRecord = z.object({
  ok: z.boolean(),
  session_id: z.string(),
  output: z.string().nullable(),
  steps: z.array(stepRecord),
});
/** The output of `svc plan run --json`. */
export type PlanRecord = z.infer<typeof planRecord>;

/** A step with a shell script. */
export function shellStep(id: string, script: string, more: Partial<StepInput> = {}): StepInput {
  return { id, command: ['/bin/sh', '-c', script], ...more };
}

/** A folder with a plan, and the commands that a person runs there. */
export class PlanFolder {
  readonly path: string;
  readonly #world: ContainerWorld;

  constructor(world: ContainerWorld, name: string) {
    this.#world = world;
    this.path = world.bench.folder(name);
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.path, name), text);
  }

  plan(steps: readonly StepInput[], image = this.#world.bench.images.debian): void {
    this.write('plan.yaml', `${JSON.stringify({ version: 1, name: 'e2e', image, steps }, null, 1)}\n`);
  }

  svc(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
    const env = { ...this.#world.bench.engine.environment, ...options.env };
    return this.#world.svc.cli(args, { ...options, cwd: this.path, env });
  }

  /** Writes the plan and freezes it. */
  async freeze(steps: readonly StepInput[], image?: string): Promise<void> {
    this.plan(steps, image);
    const done = await this.svc(['plan', 'freeze']);
    if (done.code !== 0) throw new Error(`svc plan freeze: exit ${done.code}: ${done.stderr}`);
  }

  /** Runs the frozen plan and reads the report of each step. */
  async run(...flags: readonly string[]): Promise<PlanRecord & { readonly said: string }> {
    const { code, stdout, stderr } = await this.svc(['plan', 'run', '--json', ...flags]);
    if (!stdout.startsWith('{')) throw new Error(`svc plan run: exit ${code}: ${stdout}${stderr}`);
    return { ...planRecord.parse(JSON.parse(stdout)), said: stderr };
  }

  /** Starts `svc plan run` and leaves it to the test. */
  start(...flags: readonly string[]): ReturnType<typeof start> {
    const env = { SVC_HOME: this.#world.svc.home, ...this.#world.bench.engine.environment };
    return start(SVC, ['plan', 'run', ...flags], { cwd: this.path, env });
  }
}
