import { join } from 'node:path';
import type { Limits } from '../../shared/model/limits.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Clock } from '../../shared/model/clock.ts';
import type { Metrics } from '../../machine/ports.ts';
import { AuditSpool } from '../spool/audit_spool.ts';
import { AuditWitness } from './audit_witness.ts';
import { createControlChannel } from './channel.ts';
import type { ControlChannel } from './control_channel.ts';
import { CredentialScopes } from './credential_scopes.ts';
import { CredentialCache } from './credentials.ts';
import { type Borrow, openBorrow } from '../borrow/open_borrow.ts';
import { enrol } from './enrolment.ts';
import { createHttpClient, type HttpClient } from '../../machine/http_call.ts';
import { type Identity, identityOf, identityPath, loadIdentity, saveIdentity } from '../../machine/sidecar_identity.ts';
import { Link } from './link.ts';
import { SnapshotSource } from './snapshot.ts';
import { createSnapshotFile } from './snapshot_file.ts';
import { errorCode } from '../../shared/model/error_code.ts';
import { readPrivateFile } from '../../machine/state_file.ts';
import type { Problem } from '../../shared/model/problem.ts';
import type { UpstreamProxy } from '../../shared/net/upstream_proxy.ts';

export interface ControlOptions {
  /** `$SVC_HOME`. */
  readonly home: string;
  readonly controlUrl: string;
  /** The name under which a new sidecar enrols. */
  readonly name: string;
  readonly clock: Clock;
  readonly limits: Pick<Limits, 'maxSpoolBytes' | 'credentialCacheSeconds' | 'snapshotMaxAgeSeconds'>;
  readonly metrics: Metrics;
  /** Reports problems that do not stop the sidecar. */
  readonly warn: (message: string) => void;
  /** PEM certificates trusted for the control plane besides the system's. */
  readonly extraCa?: readonly string[];
  readonly proxy?: UpstreamProxy | null;
}

/** Every part of the sidecar that talks to the control plane. */
export interface Control {
  readonly identity: Identity;
  readonly link: Link;
  readonly channel: ControlChannel;
  readonly policy: SnapshotSource;
  readonly credentials: CredentialCache;
  /** What sessions get that narrow their secrets. It knows no session before `useSessions`. */
  readonly scopes: CredentialScopes;
  readonly borrow: Borrow;
  readonly audit: AuditSpool;
  readonly witness: AuditWitness;
  /** Loads the policy of an earlier run and starts to poll and to send. */
  start(): Promise<void>;
  /** Sends the spooled events for at most `flushMs`, then stops. The next run sends the rest. */
  stop(flushMs: number): Promise<void>;
}

const MAX_REPLY_BYTES = 64 * 1024 * 1024;
const MAX_BACKOFF_LOCAL_MS = 1_000;
const MAX_BACKOFF_MS = 15_000;

/** Opens the sidecar's identity and builds what depends on it. Enrols first if there is no identity and `local.key` exists. */
export async function openControl(options: ControlOptions): Promise<Result<Control, Problem>> {
  const baseUrl = controlPlaneUrl(options.controlUrl);
  if (!baseUrl.ok) return baseUrl;
  const http = createHttpClient({
    baseUrl: baseUrl.value,
    maxReplyBytes: MAX_REPLY_BYTES,
    extraCa: options.extraCa ?? [],
    proxy: options.proxy ?? null,
  });
  const identity = await openIdentity(options, http, baseUrl.value);
  if (!identity.ok) {
    http.close();
    return identity;
  }
  try {
    return ok(assemble(options, http, identity.value, baseUrl.value));
  } catch (error) {
    http.close();
    return err(unusableFileProblem('The audit spool', join(options.home, 'sidecar', 'spool'), error));
  }
}

function unusableFileProblem(what: string, path: string, error: unknown): Problem {
  const code = errorCode(error) || 'unknown error';
  return {
    reason: 'state_unusable',
    message: `${what} in ${path} cannot be used (${code}). Give this user read and write access and enough disk space there.`,
  };
}

function assemble(options: ControlOptions, http: HttpClient, identity: Identity, baseUrl: URL): Control {
  const { clock, limits, metrics, warn } = options;
  const directory = join(options.home, 'sidecar');
  const maxBackoffMs = baseUrl.protocol === 'http:' ? MAX_BACKOFF_LOCAL_MS : MAX_BACKOFF_MS;
  const link = new Link();
  const channel = createControlChannel({ identity, http, clock, link });
  const file = createSnapshotFile({ directory, clock, warn });
  const { snapshotMaxAgeSeconds } = limits;
  const policy = new SnapshotSource({ channel, link, ...MONOTONIC, clock, file, maxBackoffMs, snapshotMaxAgeSeconds });
  const borrow = openBorrow({
    ...options,
    sidecarId: identity.sidecarId,
    credentialCacheSeconds: limits.credentialCacheSeconds,
    behindMs: () => policy.behindMs,
    record: (event) => audit.record(event),
  });
  const { credentials, scopes } = openCredentials(limits, { borrowed: borrow.credentials, channel, link, clock });
  policy.onCredentials((versions) => [credentials, scopes].forEach((each) => each.useVersions(versions)));
  const audit: AuditSpool = new AuditSpool({
    channel,
    link,
    clock,
    metrics,
    warn,
    maxBackoffMs,
    directory: join(directory, 'spool'),
    sidecarId: identity.sidecarId,
    maxSpoolBytes: limits.maxSpoolBytes,
    onAcknowledged: (head) => witness.noteAcknowledged(head),
  });
  const witness: AuditWitness = new AuditWitness({
    directory,
    channel,
    link,
    clock,
    warn,
    controlPlaneId: identity.controlPlaneId,
    record: (event) => audit.record(event),
  });
  const start = async (): Promise<void> => {
    audit.start();
    witness.start();
    await policy.start();
  };
  const stop = async (flushMs: number): Promise<void> => {
    borrow.credentials.stop();
    await audit.flush(flushMs);
    http.close();
    await Promise.all([policy.stop(), audit.stop(), witness.stop()]);
    await file.waitForWrites();
    credentials.dropAll();
    scopes.useVersions([]);
  };
  return { identity, link, channel, policy, credentials, scopes, borrow, audit, witness, start, stop };
}

const MONOTONIC = { monotonicNow: (): number => performance.now() };

function openCredentials(
  { credentialCacheSeconds }: Pick<Limits, 'credentialCacheSeconds'>,
  parts: Omit<ConstructorParameters<typeof CredentialCache>[0], 'credentialCacheSeconds'>,
): Pick<Control, 'credentials' | 'scopes'> {
  const timed = { ...parts, ...MONOTONIC, credentialCacheSeconds };
  const credentials = new CredentialCache(timed);
  return { credentials, scopes: new CredentialScopes({ ...timed, shared: credentials }) };
}

/** The local key enrols only with a control plane on this machine: whoever reads it can sign in there. */
async function openIdentity(
  options: ControlOptions,
  http: HttpClient,
  baseUrl: URL,
): Promise<Result<Identity, Problem>> {
  const path = identityPath(join(options.home, 'sidecar'));
  const known = await loadIdentity(path);
  if (!known.ok) return known;
  if (known.value !== null) return ok(known.value);
  if (baseUrl.protocol === 'https:') return err(notSignedInProblem(path, baseUrl));
  const keyPath = join(options.home, 'local.key');
  const localKey = readPrivateFile(keyPath);
  if (!localKey.ok) return localKey;
  if (localKey.value === null) return err(notEnrolledProblem(path, keyPath));
  const record = await enrol({ http, userToken: localKey.value.trim(), name: options.name });
  if (!record.ok) return record;
  try {
    await saveIdentity(path, record.value);
  } catch (error) {
    return err(unusableFileProblem('The identity', path, error));
  }
  return ok(await identityOf(record.value));
}

function notSignedInProblem(path: string, { origin }: URL): Problem {
  const message = `This sidecar is not enrolled: there is no ${path}. Sign in, which enrols it: svc login --control ${origin}`;
  return { reason: 'not_enrolled', message };
}

function notEnrolledProblem(path: string, keyPath: string): Problem {
  return {
    reason: 'not_enrolled',
    message: `This sidecar is not enrolled: there is neither ${path} nor ${keyPath}. Start the control plane on the same home with: svc up`,
  };
}

const LOOPBACK = /^(127(?:[.]\d{1,3}){3}|\[::1\]|localhost)$/;

/** Plain http is allowed only to this machine. */
function controlPlaneUrl(text: string): Result<URL, Problem> {
  const fail = (problem: string): Result<never, Problem> =>
    err({ reason: 'invalid_control_url', message: `The control plane's address ${JSON.stringify(text)} ${problem}.` });
  if (!URL.canParse(text)) return fail('is not a URL: give one like https://control.example.com');
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return fail('is neither https nor http');
  if (url.username !== '' || url.password !== '') return fail('holds a user name or password: leave them out');
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') return fail('has more than a host and a port');
  if (url.protocol === 'http:' && !LOOPBACK.test(url.hostname))
    return fail('is plain http and not on this machine: use https');
  return ok(url);
}
