import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { ENGINES } from '../../sandbox/engine/engine_address.ts';
import { ENGINE_ENDPOINT } from '../../shared/model/settings.ts';
import { readRegularFile } from '../../machine/regular_file.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { errorCode } from '../../shared/model/error_code.ts';
import { EGRESS_MODES } from '../../shared/model/egress.ts';
import { CHOSEN_BY } from '../../shared/model/account_choice.ts';
import { OWNERS } from '../../shared/model/host_binding.ts';
import { narrowing } from '../../shared/wire/sources/narrowing.ts';
import { byteLimit, requestLimit } from '../../shared/wire/host_binding_fields.ts';
import { id } from '../../shared/wire/primitives.ts';
import { hostSandbox } from './sandbox.ts';
import type { Session } from './session.ts';

/** In a session's folder: what the next run of the sidecar needs to restore it. Its CA's key is beside it. */
export const SESSION_FILE = 'session.jws';

const MAX_BYTES = 256 * 1024;
const sha256Hex = z.string().regex(/^[0-9a-f]{64}$/);
const milliseconds = z.number().int().min(0);
/** A start time is required: a process id alone may have been reused. */
const processIdentity = z.strictObject({ pid: z.int().min(1), started: z.string() });
const text = z.string();

const sandbox = z.strictObject({
  mode: z.enum(ENGINES),
  image: text,
  imageId: text,
  runtime: z.strictObject({ program: z.enum(ENGINES), endpoint: text.regex(ENGINE_ENDPOINT) }),
  detached: z.boolean(),
  egress: z.enum(EGRESS_MODES),
});

const container = z.strictObject({
  id: sha256Hex,
  /** Null in a virtual machine: the engine is asked whether the container runs. */
  process: processIdentity.nullable(),
  listener: z.strictObject({
    listener: z.enum(['namespace', 'gateway']),
    address: text,
    port: z.int().min(1).max(65_535),
    relay: z.boolean(),
  }),
});

/** The content of the file. No step scope and no plan is in it: they do not outlive the sidecar. */
export const savedSession = z.strictObject({
  version: z.literal(1),
  sessionId: id('ses'),
  sidecarId: text,
  /** The run of the system in which the processes were started. */
  bootId: text.nullable(),
  name: text.nullable(),
  /** Absent in files of earlier versions. */
  folder: text.nullable().default(null),
  createdAt: milliseconds,
  expiresAt: milliseconds,
  renews: z.boolean(),
  tokenHash: sha256Hex,
  caDigest: sha256Hex,
  /** The sidecar's own port, which is in the environment of a session without a container. */
  proxyPort: z.int().min(1).max(65_535),
  owner: processIdentity.nullable(),
  sandbox: sandbox.nullable(),
  /** Absent in files of earlier versions. */
  hostSandbox: hostSandbox.nullable().default(null),
  /** Absent in files of earlier versions. */
  allowList: z
    .strictObject({ hosts: z.array(text), named: z.array(text) })
    .nullable()
    .default(null),
  /** Absent in files of earlier versions. */
  plainHttp: z
    .strictObject({ hosts: z.array(text), named: z.array(text) })
    .nullable()
    .default(null),
  /** Absent in files of earlier versions. */
  otherPorts: z
    .strictObject({ hosts: z.array(text), named: z.array(text) })
    .nullable()
    .default(null),
  /** Absent in files of earlier versions. */
  choice: z
    .strictObject({
      secrets: z.array(z.strictObject({ path: text, by: z.enum(CHOSEN_BY), from: text.nullable() })),
      decisions: z.array(
        z.strictObject({ pattern: text, owner: z.enum(OWNERS), paths: z.array(text).min(1), by: z.enum(CHOSEN_BY) }),
      ),
      exceptions: z.array(text),
    })
    .nullable()
    .default(null),
  /** Absent in files of earlier versions. An earlier version restores no session that has some. */
  scopes: z.array(z.strictObject({ path: text, narrowing })).optional(),
  /** Absent without one, and in files of earlier versions. An earlier version restores no session that has some. */
  limits: z
    .strictObject({
      requestsPerMinute: requestLimit.exactOptional(),
      requestsPerDay: requestLimit.exactOptional(),
      bytesPerDay: byteLimit.exactOptional(),
    })
    .optional(),
  container: container.nullable(),
  unsealed: z.array(z.strictObject({ env: text, reference: text, host: text, reason: text })),
  mcpServers: z.array(text).nullable(),
  paused: z.array(z.strictObject({ binding: text, host: text })),
});
export type SavedSession = z.output<typeof savedSession>;

/** What the sidecar adds to a session's own facts. */
interface RunFacts {
  readonly sidecarId: string;
  readonly bootId: string | null;
  readonly proxyPort: number;
}

/**
 * What to save of a session; null if the next run may not restore it: a plan's, a self-test, an MCP server's, one without a process to depend on,
 * or one whose container has no listener of its own. While the sidecar restarts, another user of the machine could bind the port at
 * the bridge's gateway, and the container would send its token there.
 */
export function toSaved(session: Session, run: RunFacts): SavedSession | null {
  const { tokenHash, lock, owner, sandbox: box, ca } = session;
  const inContainer = containerOf(session);
  if (tokenHash === null || lock !== null) return null;
  if (session.selfTest) return null;
  if (session.mcpServer !== null) return null;
  if (box === null ? owner === null : inContainer === null) return null;
  const saved = savedSession.safeParse({
    version: 1,
    ...run,
    sessionId: session.id,
    name: session.name,
    folder: session.folder,
    createdAt: session.createdAt,
    expiresAt: session.expiresAt,
    renews: session.renews,
    tokenHash: tokenHash.toString('hex'),
    caDigest: ca.digest,
    owner,
    sandbox: box,
    hostSandbox: session.hostSandbox,
    allowList: session.allowList,
    plainHttp: session.plainHttpList,
    otherPorts: session.otherPortsList,
    choice: session.choice,
    ...(session.scopes.length > 0 && { scopes: session.scopes }),
    ...(Object.keys(session.limits).length > 0 && { limits: session.limits }),
    container: inContainer,
    unsealed: session.unsealed,
    mcpServers: session.mcpServers,
    paused: session.paused,
  });
  return saved.data ?? null;
}

function containerOf({ containerId, container: process, listener }: Session): object | null {
  if (containerId === null || listener?.listener !== 'namespace') return null;
  return { id: containerId, process, listener };
}

export type SessionFileProblem = 'absent' | 'session_file_exposed';

/**
 * Reads the file if only this user can have written it: a regular file, and its folder, that belong to the user and that
 * nobody else may read or write. A link is not followed.
 */
export async function readSessionFile(
  directory: string,
  uid: number | null,
): Promise<Result<string, SessionFileProblem>> {
  try {
    const folder = await lstat(directory);
    if (!folder.isDirectory() || !isPrivate(folder, uid)) return err('session_file_exposed');
    const file = readRegularFile(join(directory, SESSION_FILE), MAX_BYTES);
    if (!file.ok) return err(file.error.reason === 'absent' ? 'absent' : 'session_file_exposed');
    const { bytes, stats } = file.value;
    return isPrivate(stats, uid) ? ok(bytes.toString('utf8')) : err('session_file_exposed');
  } catch (error) {
    return err(errorCode(error) === 'ENOENT' ? 'absent' : 'session_file_exposed');
  }
}

function isPrivate(found: { readonly mode: number; readonly uid: number }, uid: number | null): boolean {
  return (found.mode & 0o077) === 0 && (uid === null || found.uid === uid);
}
