import { setTimeout as delay } from 'node:timers/promises';
import { containerLabels } from '../../sandbox/engine/container_labels.ts';
import type { ContainerRuntime, ContainerSpec } from '../../sandbox/engine/container_runtime.ts';
import { startArguments } from '../../sandbox/engine/docker_arguments.ts';
import { engineCommand, isReadByEngine } from '../../sandbox/engine/engine_cli.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { ServerSession, ServerSessions } from '../gateway_ports.ts';
import { confinedSpec } from './confined_container.ts';
import {
  type ContainerMarks,
  CONTAINER_VARIABLES,
  containerLabelsOf,
  type ProgramCommand,
} from './container_command.ts';
import { proxiedEnvironment } from './proxied_environment.ts';

/** What one run of a server in a container with a closed network consists of (decision 0080). */
export interface SealedRun {
  readonly server: McpServer;
  readonly image: string;
  readonly command: readonly string[];
  /** The folder of its installed package; null if the command needs none. */
  readonly packageFolder: string | null;
  /** Its own variables, with credentials inserted. */
  readonly env: Readonly<Record<string, string>>;
  readonly marks: ContainerMarks;
  /** `$SVC_HOME`. */
  readonly home: string;
}

/** A created container. Its program runs once the proxy is open in its network. */
export interface SealedContainer {
  /** Starts it with our streams. */
  readonly command: ProgramCommand;
  /** Opens the proxy and lets the program begin; fails if the container has ended (`hasEnded`). */
  begin(stdin: NodeJS.WritableStream, hasEnded: () => boolean): Promise<Result<void, string>>;
  /** Removes the container and ends its session. */
  end(): Promise<void>;
}

const BUNDLE = '/etc/svc/proxy/bundle.pem';
const POLL_MS = 20;
const START_MS = 30_000;

/** Creates the session and the container of a run. After a failure nothing is left. Errors are for a person. */
export async function createSealedContainer(
  runtime: ContainerRuntime,
  sessions: ServerSessions,
  run: SealedRun,
): Promise<Result<SealedContainer, string>> {
  const image = await runtime.inspectImage(run.image);
  if (!image.ok) return err([image.error.message, ...image.error.fixes.slice(0, 1)].join('. '));
  const place = { kind: 'container', image: run.image, imageId: image.value.id, endpoint: runtime.endpoint } as const;
  const opened = await sessions.open(run.server, place);
  if (!opened.ok) return opened;
  const { sessionId } = opened.value;
  const created = await runtime.create(specOf(run, opened.value, image.value.id));
  const recorded = created.ok ? await sessions.recordContainer(sessionId, created.value) : err(created.error.message);
  if (!created.ok || !recorded.ok) {
    if (created.ok) await runtime.remove(created.value);
    await sessions.end(sessionId);
    return recorded.ok ? err('the container could not be created') : recorded;
  }
  const id = created.value;
  return ok({
    command: engineCommand(runtime.endpoint, startArguments(id, { stdin: true })),
    begin: (stdin, hasEnded) => begin({ runtime, sessions, sessionId, id }, stdin, hasEnded),
    async end() {
      await runtime.remove(id);
      await sessions.end(sessionId);
    },
  });
}

interface Created {
  readonly runtime: ContainerRuntime;
  readonly sessions: ServerSessions;
  readonly sessionId: string;
  readonly id: string;
}

async function begin(
  { runtime, sessions, sessionId, id }: Created,
  stdin: NodeJS.WritableStream,
  hasEnded: () => boolean,
): Promise<Result<void, string>> {
  for (let waitedMs = 0; waitedMs < START_MS && !hasEnded(); waitedMs += POLL_MS) {
    const pid = await runtime.pidOf(id);
    if (!pid.ok) return err(pid.error.message);
    if (pid.value !== null) {
      const opened = await sessions.openListener(sessionId, pid.value);
      if (opened.ok) stdin.write('\n');
      return opened;
    }
    await delay(POLL_MS);
  }
  return err(hasEnded() ? 'the container ended at its start' : 'the engine did not start the container in time');
}

function specOf(run: SealedRun, session: ServerSession, imageId: string): ContainerSpec {
  const { marks, home } = run;
  return confinedSpec(
    { ...run, image: imageId },
    {
      labels: { ...containerLabelsOf(marks), ...containerLabels(home, session.sessionId) },
      env: environmentOf(run, session),
      mounts: [{ source: session.caBundlePath, target: BUNDLE, readOnly: true }],
    },
  );
}

function environmentOf({ env }: SealedRun, session: ServerSession): Record<string, string> {
  const own = Object.entries(env).filter(([name]) => !isReadByEngine(name));
  const proxied = proxiedEnvironment(Object.fromEntries(own), { ...session, caBundlePath: BUNDLE });
  return { ...proxied, ...CONTAINER_VARIABLES };
}
