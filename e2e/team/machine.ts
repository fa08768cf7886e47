import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startSidecar } from '../runtimes/hosted_control_plane.ts';
import { run, type Running, until, waitForEnd } from '../runtimes/programs.ts';
import { SVC } from '../support/program.ts';
import type { Person } from './person.ts';
import { API_HOST, type TeamWorld } from './team_world.ts';

/** A person's computer with svc. */
export class Machine {
  readonly home: string;
  readonly #world: TeamWorld;
  readonly #programs: Running[] = [];

  private constructor(world: TeamWorld, home: string) {
    this.#world = world;
    this.home = home;
  }

  static async at(world: TeamWorld): Promise<Machine> {
    return new Machine(world, await mkdtemp(join(tmpdir(), 'svc-machine-')));
  }

  svc = (...args: string[]): Running => {
    const program = run(SVC, ['--home', this.home, ...args], { SVC_UPSTREAM_CA: this.#world.ca.file });
    this.#programs.push(program);
    return program;
  };

  /** Signs svc in, by the code that the person types in the browser. */
  async signIn(person: Person): Promise<string> {
    const login = this.svc('login', '--control', this.#world.origin, '--name', `laptop of ${person.name}`);
    await approve(person, login);
    return waitForEnd(login);
  }

  /** Starts the sidecar, for which the API is on loopback. */
  startSidecar(): Promise<Running> {
    const { upstream, ca } = this.#world;
    return startSidecar(this.svc, ['--upstream-ca', ca.file, '--resolve', `${API_HOST}:127.0.0.1:${upstream.port}`]);
  }

  /** All that svc has printed here. */
  output(): string {
    return this.#programs.map((program) => program.output()).join('\n');
  }

  async stop(): Promise<void> {
    await Promise.all(this.#programs.map((program) => program.stop()));
    await rm(this.home, { recursive: true, force: true });
  }
}

/** Signs a program in, by the code that the person types in the browser. */
export async function approve(person: Person, login: Running): Promise<void> {
  const code = await until(login, async () => /\b[A-Z]{4}-[A-Z]{4}\b/.exec(login.output())?.[0] ?? null);
  await person.visit('/device');
  await person.submit('Continue', { 'Type the code that svc login shows in your own terminal.': code });
  await person.submit('Sign it in');
}
