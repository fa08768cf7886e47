import { statSync } from 'node:fs';
import { secretCheckReply } from '../../shared/wire/secrets.ts';
import type { BindMount } from '../../sandbox/engine/container_runtime.ts';
import { type EngineUser, mayWriteByList } from '../../sandbox/engine/engine_user.ts';
import { variableProblem } from '../../sandbox/launch/container_environment.ts';
import { checkMount, checkMounts, WORKSPACE } from '../../sandbox/launch/mount_policy.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { LaunchRequest } from './launch_options.ts';
import { mountPolicyOf } from './mount_checks.ts';

/** The mounts of a launch, including the working directory, checked against the mount policy. */
export function launchMounts(call: Call, request: LaunchRequest, endpoint: string | null): readonly BindMount[] {
  const { context } = call;
  const own = { source: context.workingDirectory, target: WORKSPACE, readOnly: false };
  const taken = request.mounts.some(({ target }) => target === WORKSPACE);
  const isDefault = request.defaultMount && !taken;
  const policy = mountPolicyOf(context, call.options, endpoint, context.workingDirectory);
  if (isDefault) {
    const allowed = checkMount(own, policy);
    if (!allowed.ok) throw unusableDirectoryError(allowed.error);
  }
  const checked = checkMounts(isDefault ? [own, ...request.mounts] : request.mounts, policy);
  if (checked.ok) return checked.value;
  throw new CliError(EXIT.notStarted, `--mount: ${checked.error}`);
}

function unusableDirectoryError(problem: string): CliError {
  return new CliError(EXIT.notStarted, `the working directory cannot be mounted at ${WORKSPACE}: ${problem}`, [
    "Launch from the project's directory, or add --no-default-mount.",
  ]);
}

/**
 * Warns if the image's agent may not be able to write the mounted working directory: the reason is hard to find from inside the
 * container.
 */
export function warnOfOwner(
  { print }: { readonly print: Pick<Call['print'], 'warn'> },
  mounts: readonly BindMount[],
  agent: { readonly uid: number },
  engine: EngineUser,
): void {
  const workspace = mounts.find(({ target, readOnly }) => target === WORKSPACE && !readOnly);
  if (workspace === undefined) return;
  const { uid, mode } = statSync(workspace.source);
  if ((mode & 0o002) !== 0) return;
  const warning = engine.isRootless
    ? rootlessWarning(workspace.source, agent.uid, engine)
    : ownerWarning(workspace.source, agent.uid, uid);
  if (warning !== null) print.warn(warning);
}

function ownerWarning(path: string, agentUid: number, uid: number): string | null {
  if (uid === agentUid) return null;
  const fix =
    uid === 0
      ? `chown it to ${agentUid}, or launch from a directory that you own`
      : `\`svc image build ... --agent-uid ${uid}\` builds an image whose agent has that user id`;
  return `${path} belongs to user ${uid} but the image's agent is user ${agentUid} and may not be able to write there: ${fix}`;
}

/** In such an engine the person's own files are root's, and each other user of a container is a subordinate id of the person. */
function rootlessWarning(path: string, agentUid: number, { uid, firstSubordinate }: EngineUser): string | null {
  const outside = firstSubordinate === null ? null : firstSubordinate + agentUid - 1;
  if (outside !== null && mayWriteByList(path, outside)) return null;
  const fix =
    outside === null
      ? 'give the agent access, or use `svc run --sandbox`'
      : `\`setfacl -R -m u:${outside}:rwX,d:u:${outside}:rwX,d:u:${uid}:rwX ${path}\` gives it access, or use \`svc run --sandbox\``;
  return `in a rootless engine ${path} belongs to root, and the image's agent (user ${agentUid}) may not be able to write there: ${fix}`;
}

/** The working directory of the command: `--workdir`, else the mounted workspace. Null: the image's own. */
export function launchWorkdir(request: LaunchRequest, mounts: readonly BindMount[]): string | null {
  return request.workdir ?? (mounts.some(({ target }) => target === WORKSPACE) ? WORKSPACE : null);
}

/**
 * The variables of `--env` with the caller's values. A value that equals a stored secret is refused: the agent could read it in
 * the container's environment.
 */
export async function launchVariables(call: Call, names: readonly string[]): Promise<Record<string, string>> {
  const values = names.map((name) => {
    const problem = name.includes('=')
      ? 'contains a value: give only the name; the value comes from your environment'
      : variableProblem(name);
    if (problem !== null) throw new CliError(EXIT.usage, `--env ${JSON.stringify(name.split('=')[0])} ${problem}`);
    const value = call.context.env[name];
    if (value !== undefined) return value;
    throw new CliError(EXIT.usage, `--env ${name} is not set in your environment: export it, or leave the option out`);
  });
  if (names.length > 0) await refuseStoredSecrets(call, names, values);
  return Object.fromEntries(names.map((name, index) => [name, values[index] ?? '']));
}

/** Limit of `POST /v1/secrets/check` per call. */
const CHECKED_AT_ONCE = 64;

async function refuseStoredSecrets(call: Call, names: readonly string[], values: readonly string[]): Promise<void> {
  const control = controlClient(call.context, call.options);
  for (let from = 0; from < values.length; from += CHECKED_AT_ONCE) {
    const body = { values: values.slice(from, from + CHECKED_AT_ONCE) };
    const { matches } = await control.call('POST', '/v1/secrets/check', secretCheckReply, { body });
    const [match] = matches;
    if (match === undefined) continue;
    const reference = `vault://${match.path}`;
    throw new CliError(EXIT.notStarted, `--env ${names[from + match.index]} holds the stored secret ${reference}`, [
      `Bind it, so that the proxy adds it: svc binding add HOST --credential ${reference} --scheme SCHEME`,
      `If no scheme fits: --unsealed ${names[from + match.index]}=${reference},host=HOST,reason=TEXT (this is recorded).`,
    ]);
  }
}
