import { randomBytes } from 'node:crypto';
import { ok, type Result } from '../../shared/model/result.ts';
import { AGENT_HARDENING } from './agent_hardening.ts';
import type { ContainerRuntime, RuntimeFailure } from './container_runtime.ts';
import {
  createArguments,
  execArguments,
  inheritedVariables,
  pipedStartArguments,
  probeArguments,
  startArguments,
} from './docker_arguments.ts';
import { dockerApi } from './docker_api.ts';
import { createContainer } from './docker_creation.ts';
import { attachStreams, streamsOf } from './docker_streams.ts';
import { dockerQueries } from './docker_queries.ts';
import { type EngineName, engineNameOf, podmanStore } from './engine_address.ts';
import { engineProgramAt, type EngineProgram } from './engine_cli.ts';
import type { EngineQueries } from './engine_queries.ts';
import { podmanQueries } from './podman_queries.ts';
import type { Environment } from '../launch/session_environment.ts';

const PROBE_TIMEOUT_MS = 60_000;
const doNothing = (): undefined => undefined;

/**
 * An engine with a known endpoint, such as the one of a session: Docker, or podman, whose command line is compatible. What has streams
 * or needs the user's settings of the program goes through the program; the rest through Docker's API where there is one.
 */
export function engineRuntime(env: Environment, endpoint: string): ContainerRuntime {
  const store = podmanStore(endpoint);
  const queries = store === null ? dockerQueries(endpoint) : podmanQueries(env, store);
  const calls = callsOf(engineNameOf(endpoint), engineProgramAt(env, endpoint));
  const api = store === null ? dockerApi(endpoint) : null;
  return {
    endpoint,
    ...queries,
    pidOf: (id) => pidOf(queries, id),
    ...calls,
    startWithStreams: (id) => (store === null ? startWithStreams(endpoint, queries, id) : calls.startWithStreams(id)),
    create: (spec) =>
      api === null || spec.enginesProxies === 'kept' ? calls.create(spec) : createContainer(api, spec),
  };
}

type ProgramCalls = Omit<ContainerRuntime, keyof EngineQueries | 'endpoint' | 'pidOf'>;

function callsOf(name: EngineName, engine: EngineProgram): ProgramCalls {
  return {
    program: name,
    // Of an archive without a byte.
    makeEmptyImage: (image) => engine.read(['import', '-', image], { parse: doNothing }),
    create: (spec) =>
      engine.read(createArguments(spec, name), {
        add: inheritedVariables(spec.env, name),
        parse: (text) => text.trim(),
        clientSettings: spec.enginesProxies === 'kept',
      }),
    start: (id, streams) => engine.spawn(startArguments(id, streams), { stdio: 'inherit', ownSession: !streams.tty }),
    startWithStreams: (id) => Promise.resolve(ok(streamsOf(engine.spawn(pipedStartArguments(id), { stdio: 'pipe' })))),
    runProbe: (image, script) => runProbe(engine, image, script),
    exec: (id, spec) =>
      engine.spawn(execArguments(id, spec, name), { stdio: spec.stdio, add: inheritedVariables(spec.env, name) }),
    logs: (id, { follow }) => engine.spawn(['logs', ...(follow ? ['--follow'] : []), '--', id], { stdio: 'inherit' }),
  };
}

async function startWithStreams(
  endpoint: string,
  queries: EngineQueries,
  id: string,
): ReturnType<ContainerRuntime['startWithStreams']> {
  const attached = await attachStreams(endpoint, id);
  if (!attached.ok) return attached;
  const started = await queries.startDetached(id);
  if (started.ok) return attached;
  attached.value.output.destroy();
  return started;
}

async function pidOf(queries: EngineQueries, id: string): Promise<Result<number | null, RuntimeFailure>> {
  const state = await queries.inspect(id);
  return state.ok ? ok(state.value?.pid ?? null) : state;
}

async function runProbe(engine: EngineProgram, image: string, script: string): Promise<Result<string, RuntimeFailure>> {
  const name = `svc-probe-${randomBytes(8).toString('hex')}`;
  const args = probeArguments(name, image, script, AGENT_HARDENING);
  const run = await engine.read(args, { parse: (text) => text, timeoutMs: PROBE_TIMEOUT_MS, clientSettings: false });
  // The engine keeps a container running after its client was killed.
  if (!run.ok && run.error.reason === 'engine_timeout')
    await engine.read(['rm', '--force', name], { parse: doNothing });
  return run;
}
