import { spawn, type ChildProcess } from 'node:child_process';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { RuntimeFailure } from './container_runtime.ts';
import { checkDockerEndpoint, programFailure, refusedFailure } from './docker_endpoint.ts';
import { type EngineName, engineNameOf, podmanStore } from './engine_address.ts';
import { runProgram } from './engine_program.ts';
import { checkPodmanStore } from './podman_store.ts';
import type { Environment } from '../launch/session_environment.ts';

interface ReadOptions<T> {
  readonly parse: (stdout: string) => T;
  /** Variables for this call, in addition to those that the program needs. */
  readonly add?: Readonly<Record<string, string>>;
  /** Null: no time limit. */
  readonly timeoutMs?: number | null;
  /** False: ignore the user's settings of the program, which put proxy variables into containers. */
  readonly clientSettings?: boolean;
}

interface SpawnOptions {
  readonly stdio: 'inherit' | 'pipe';
  readonly add?: Readonly<Record<string, string>>;
  /** Run in its own session, without our terminal's key presses. */
  readonly ownSession?: boolean;
}

/** An engine's program, bound to one engine. */
export interface EngineProgram {
  /** Runs a command to its end; a refusal of the engine is a problem in its own words. */
  read<T>(args: readonly string[], options: ReadOptions<T>): Promise<Result<T, RuntimeFailure>>;
  spawn(args: readonly string[], options: SpawnOptions): ChildProcess;
}

const TIMEOUT_MS = 60_000;

/**
 * The caller's variables that the program needs. Nothing else is passed on, so that `--env NAME` refers only to our values, and
 * only we select the engine.
 */
const OWN_VARIABLES =
  /^(PATH|HOME|TERM|LANG|LC_[A-Z]+|TMPDIR|XDG_RUNTIME_DIR|XDG_CONFIG_HOME|DOCKER_CONFIG|DOCKER_API_VERSION|DOCKER_DEFAULT_PLATFORM)$/;

/** The same of podman, whose settings are files that these name. The bus is the one of the user's systemd, which makes control groups. */
const OWN_OF_PODMAN =
  /^(CONTAINERS_(CONF|STORAGE_CONF|REGISTRIES_CONF)|XDG_(DATA|CACHE)_HOME|DBUS_SESSION_BUS_ADDRESS|STORAGE_(DRIVER|OPTS))$/;

/** Other variables that podman reads. */
const STEERS_PODMAN = /^(CONTAINER_(HOST|CONNECTION|SSHKEY|PASSPHRASE)|PODMAN_.*|_CONTAINERS_.*)$/;

/** Variables that select the engine; used only to find it. */
const MEANS_AN_ENGINE = /^DOCKER_(HOST|CONTEXT|TLS|TLS_VERIFY|CERT_PATH)$/;

/** True for a variable that an engine's program itself reads, so that it cannot be passed into a container. */
export function isReadByEngine(name: string): boolean {
  return (
    name.startsWith('DOCKER_') || (OWN_OF_PODMAN.test(name) && !name.startsWith('XDG_')) || STEERS_PODMAN.test(name)
  );
}

function ownEnvironment(env: Environment): Record<string, string> {
  return pickVariables(env, (name) => OWN_VARIABLES.test(name));
}

/** The environment in which podman is asked about itself. */
export function podmanEnvironmentOf(env: Environment): Record<string, string> {
  return pickVariables(env, (name) => OWN_VARIABLES.test(name) || OWN_OF_PODMAN.test(name));
}

/** The environment in which the program reports the selected engine. */
export function engineEnvironmentOf(env: Environment): Record<string, string> {
  return pickVariables(env, (name) => OWN_VARIABLES.test(name) || MEANS_AN_ENGINE.test(name));
}

function pickVariables(env: Environment, wanted: (name: string) => boolean): Record<string, string> {
  const found = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(found.filter(([name]) => wanted(name)));
}

/** The `docker` program, bound to the engine at an endpoint. */
export function dockerProgram(env: Environment, endpoint: string): EngineProgram {
  return engineProgram({
    name: 'docker',
    bind: ['--host', endpoint],
    withoutSettings: ['--config', '/nonexistent'],
    env: ownEnvironment(env),
    check: () => checkDockerEndpoint(endpoint),
  });
}

/** The `podman` program of this user, bound to the folder where it keeps its containers. */
export function podmanProgram(env: Environment, store: string): EngineProgram {
  const own = podmanEnvironmentOf(env);
  return engineProgram({
    name: 'podman',
    bind: [],
    withoutSettings: [],
    env: own,
    check: () => checkPodmanStore(own, store),
  });
}

/** The program of an engine's endpoint. */
export function engineProgramAt(env: Environment, endpoint: string): EngineProgram {
  const store = podmanStore(endpoint);
  return store === null ? dockerProgram(env, endpoint) : podmanProgram(env, store);
}

/** A command line of an engine's program, for a caller that starts it itself. */
export function engineCommand(
  endpoint: string,
  args: readonly string[],
): { program: EngineName; args: readonly string[] } {
  const program = engineNameOf(endpoint);
  return { program, args: program === 'podman' ? args : ['--host', endpoint, ...args] };
}

/**
 * The environment of an engine's program that passes variables on to a container. Podman finds its containers and its settings by
 * variables, so these are the caller's, and never those of the container.
 */
export function environmentAt(
  endpoint: string,
  caller: Environment,
  variables: Readonly<Record<string, string>>,
): Record<string, string> {
  if (engineNameOf(endpoint) !== 'podman') return { ...variables };
  const passed = pickVariables(
    variables,
    (name) => !OWN_VARIABLES.test(name) && !isReadByEngine(name) && !name.startsWith('XDG_'),
  );
  return { ...passed, ...podmanEnvironmentOf(caller) };
}

interface ProgramFacts {
  readonly name: string;
  /** Arguments that bind every command to one engine. */
  readonly bind: readonly string[];
  readonly withoutSettings: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Checks if the engine is reachable at all, after a command has failed. */
  readonly check: () => Promise<Result<string, RuntimeFailure>>;
}

function engineProgram({ name, bind, withoutSettings, env, check }: ProgramFacts): EngineProgram {
  return {
    async read(args, { parse, add = {}, timeoutMs = TIMEOUT_MS, clientSettings = true }) {
      const all = [...bind, ...(clientSettings ? [] : withoutSettings), ...args];
      const run = await runProgram(name, all, { env: { ...env, ...add }, timeoutMs });
      if (!run.ok) return err(programFailure(name, run.error));
      if (run.value.exitCode === 0) return ok(parse(run.value.stdout));
      const engine = await check();
      return engine.ok ? err(problemOfStderr(run.value.stderr)) : engine;
    },
    spawn: (args, { stdio, add = {}, ownSession = false }) =>
      spawn(name, [...bind, ...args], { env: { ...env, ...add }, stdio, detached: ownSession }),
  };
}

function problemOfStderr(stderr: string): RuntimeFailure {
  return refusedFailure(stderr.trim().replace(/^(Error response from daemon|Error): /, ''));
}
