import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { isExecutable } from '../../machine/is_executable.ts';
import type { RuntimeFailure } from './container_runtime.ts';
import { runProgram, type ProgramFailureReason } from './engine_program.ts';
import { tryUnixSocket, unixSocketPath, type SocketState } from './engine_socket.ts';
import type { Failure } from '../../shared/model/failure.ts';

const TIMEOUT_MS = 10_000;

const DEFAULT_ENDPOINT = 'unix:///var/run/docker.sock';

/**
 * Finds the engine that the user's environment and settings select, and checks that it is on this machine and answers, and that its
 * program is installed, without which no container can be attached to.
 */
export async function findDockerEndpoint(
  env: Readonly<Record<string, string>>,
): Promise<Result<string, RuntimeFailure>> {
  const endpoint = await findEndpoint(env);
  if (!endpoint.ok || hasProgram(env)) return endpoint;
  return err(programFailure('docker', { reason: 'missing', message: '' }));
}

function hasProgram(env: Readonly<Record<string, string>>): boolean {
  return (env['PATH'] ?? '').split(delimiter).some((folder) => isExecutable(join(folder, 'docker')));
}

async function findEndpoint(env: Readonly<Record<string, string>>): Promise<Result<string, RuntimeFailure>> {
  const plain = plainEndpoint(env);
  if (plain !== null) return checkDockerEndpoint(plain);
  const args = ['context', 'inspect', '--format', '{{json .Endpoints.docker.Host}}'];
  const asked = await runProgram('docker', args, { env, timeoutMs: TIMEOUT_MS });
  if (!asked.ok) return err(programFailure('docker', asked.error));
  const { exitCode, stdout, stderr } = asked.value;
  if (exitCode !== 0) return err(unusableContextFailure(stderr));
  const endpoint = endpointOf(stdout);
  if (endpoint === null) return err(unusableContextFailure(stdout));
  return checkDockerEndpoint(endpoint);
}

/** The endpoint if no context can be set: asking the program takes a tenth of the time of a container start. */
function plainEndpoint(env: Readonly<Record<string, string>>): string | null {
  const { DOCKER_CONTEXT: context = '', DOCKER_HOST: host = '', HOME: home } = env;
  if (context !== '') return null;
  if (host !== '') return host;
  const settings = env['DOCKER_CONFIG'] ?? (home === undefined ? null : join(home, '.docker'));
  return settings !== null && !existsSync(join(settings, 'config.json')) ? DEFAULT_ENDPOINT : null;
}

/** Returns the endpoint if an engine listens on it. */
export async function checkDockerEndpoint(endpoint: string): Promise<Result<string, RuntimeFailure>> {
  const path = unixSocketPath(endpoint);
  if (path === null) return err(remoteEngine(endpoint));
  const state = await tryUnixSocket(path);
  return state === 'listening' ? ok(endpoint) : err(socketFailure(endpoint, state));
}

/** Why the engine's program did not finish. */
export function programFailure(program: string, failure: Failure<ProgramFailureReason>): RuntimeFailure {
  if (failure.reason === 'missing') {
    return {
      reason: 'engine_missing',
      message: `the program \`${program}\` is not on the PATH`,
      fixes: ['Install it, or add it to the PATH.', WITHOUT_CONTAINER],
    };
  }
  if (failure.reason === 'timeout') {
    return {
      reason: 'engine_timeout',
      message: `\`${program}\` gave no answer in time`,
      fixes: ['Check the engine: `docker info`.'],
    };
  }
  return { reason: 'engine_refused', message: `\`${program}\` failed: ${failure.message.split('\n')[0]}`, fixes: [] };
}

const MAX_MESSAGE_LENGTH = 600;

/** A refusal in the engine's own words. */
export function refusedFailure(said: string): RuntimeFailure {
  const words = said.trim().slice(0, MAX_MESSAGE_LENGTH);
  const message = `the engine refused: ${words === '' ? 'no reason given' : words}`;
  return { reason: 'engine_refused', message, fixes: [] };
}

/** Why the engine behind a socket cannot be used. */
function socketFailure(endpoint: string, state: Exclude<SocketState, 'listening'>): RuntimeFailure {
  if (state === 'forbidden') {
    return {
      reason: 'engine_forbidden',
      message: `this user may not use the Docker Engine at ${endpoint} (permission denied)`,
      fixes: [
        'Use a rootless engine of your own, or have an administrator add you to the group of that socket.',
        'Note that access to that socket amounts to root on this machine.',
      ],
    };
  }
  return {
    reason: 'engine_unreachable',
    message: `no Docker Engine listens at ${endpoint}`,
    fixes: ['Start it, or set DOCKER_HOST to the unix:// socket that it listens on.', WITHOUT_CONTAINER],
  };
}

const WITHOUT_CONTAINER = '`svc run -- COMMAND` works without a container.';

function remoteEngine(endpoint: string): RuntimeFailure {
  return {
    reason: 'engine_remote',
    message: `the Docker Engine is ${JSON.stringify(withoutUserInfo(endpoint))}, not a Unix socket of this machine`,
    fixes: [
      'The mounts, the CA and the proxy are on this machine, so the engine must be too.',
      'Choose a local engine: `docker context use default`, or DOCKER_HOST=unix:///var/run/docker.sock.',
    ],
  };
}

/** An ssh:// or tcp:// endpoint may contain a password. */
function withoutUserInfo(endpoint: string): string {
  return endpoint.replace(/\/\/[^/]*@/, '//');
}

function unusableContextFailure(said: string): RuntimeFailure {
  return {
    reason: 'engine_refused',
    message: `the Docker context cannot be read: ${said.trim().split('\n')[0]?.slice(0, 300) ?? ''}`,
    fixes: ['Choose another one: `docker context use default`, or unset DOCKER_CONTEXT.'],
  };
}

function endpointOf(json: string): string | null {
  try {
    return z.string().min(1).parse(JSON.parse(json));
  } catch {
    return null;
  }
}
