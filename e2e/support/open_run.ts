import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { expectSuccess, type Finished, finish, type RunOptions, start, SVC } from './program.ts';
import { waitFor } from './wait_for.ts';

/** Prints its environment, then keeps the run open until its input ends. */
const HOLD = `env -0; printf '\\0'; exec cat`;
/** What the shell of `HOLD` sets for itself. */
const OF_THE_SHELL = new Set(['PWD', 'OLDPWD', 'SHLVL', '_']);

/**
 * One `svc run` whose environment several commands get, one after the other: a run of its own for each would start Node twice. For
 * tests of what a command does with the environment, and not of `svc run`. A binding that is added later reaches it with the next poll.
 */
export class OpenRun {
  readonly #holder: ChildProcess;
  readonly #environment: Readonly<Record<string, string>>;

  private constructor(holder: ChildProcess, environment: Readonly<Record<string, string>>) {
    this.#holder = holder;
    this.#environment = environment;
  }

  /** Starts `svc run` with these flags on the state directory. */
  static async start(home: string, flags: readonly string[] = [], options: RunOptions = {}): Promise<OpenRun> {
    const argv = ['run', ...flags, '--', 'sh', '-c', HOLD];
    const holder = start(SVC, argv, { ...options, env: { ...options.env, SVC_HOME: home } });
    let shown = '';
    let said = '';
    holder.stdout?.setEncoding('utf8').on('data', (text: string) => (shown += text));
    holder.stderr?.setEncoding('utf8').on('data', (text: string) => (said += text));
    await waitFor('svc run to start its command', () => {
      if (holder.exitCode !== null) throw new Error(`svc run ended (${holder.exitCode}): ${said}`);
      return shown.endsWith('\0\0');
    });
    const pairs = shown.slice(0, -2).split('\0').map(splitPair);
    return new OpenRun(holder, Object.fromEntries(pairs.filter(([name]) => !OF_THE_SHELL.has(name))));
  }

  /** Runs a command with the environment of the run, and these variables. */
  run(command: readonly string[], { cwd, env, input }: RunOptions = {}): Promise<Finished> {
    const [program = '', ...args] = command;
    const child = spawn(program, args, { ...(cwd !== undefined && { cwd }), env: { ...this.#environment, ...env } });
    return finish(child, command.join(' '), input);
  }

  /** The same, and returns the standard output; fails unless it succeeds. */
  async ok(command: readonly string[], options: RunOptions = {}): Promise<string> {
    return expectSuccess(await this.run(command, options), command.join(' ')).stdout;
  }

  /** Ends the session; afterwards its events are in the audit log. */
  async end(): Promise<void> {
    const ended = once(this.#holder, 'close');
    this.#holder.stdin?.end();
    await ended;
  }
}

function splitPair(pair: string): readonly [string, string] {
  const [name = '', value = ''] = pair.split(/=(.*)/s);
  return [name, value];
}
