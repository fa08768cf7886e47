import { DEFAULT_QUOTA_PERCENT, DEFAULT_REGISTRY_URL } from '../../shared/model/settings.ts';
import type { AnchorSettings } from '../../shared/model/anchor_settings.ts';
import { type ApiLimits, DEFAULT_LIMITS } from '../../shared/model/limits.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import type { SignInSettings } from '../../shared/model/sign_in_settings.ts';
import { openRegistry } from '../marketplace/registry.ts';
import type { PrintMail } from '../kernel/mail.ts';
import { configureSignIn } from '../sign_in/configure.ts';
import { insertAccount } from '../store/accounts.ts';
import { deleteAllSessions } from '../store/browser_sessions.ts';
import type { Database, Statement } from '../store/database.ts';
import { type InstallationName, readInstallation, withSealGuard, setOnce } from '../store/installation.ts';
import { migrate, type MigrationRefusalReason } from '../store/migrate.ts';
import { hasSecrets } from '../store/secrets.ts';
import { AccessKeys } from '../tokens/access_keys.ts';
import { takeOverAudit, type UnsealedChain } from '../services/audit/audit_takeover.ts';
import { beginEnterprise } from '../kernel/commit.ts';
import { type ControlPlane, makeControlKey, openControlPlane } from '../kernel/control_key.ts';
import { sha256Base64Url } from '../kernel/encoding.ts';
import type { Lifetime } from '../kernel/lifetime.ts';
import { CallRate } from '../kernel/call_rate.ts';
import { OpenCalls } from '../kernel/open_calls.ts';
import type { Outbound } from '../kernel/outbound.ts';
import type { ProgramContext } from './program_context.ts';
import { freshId, type LocalMode, nowText } from '../kernel/service_context.ts';
import { SeenEnds } from '../kernel/seen_ends.ts';
import { OwnLooks, type PolicyLooks } from '../kernel/policy_looks.ts';
import type { Turns } from '../kernel/turns.ts';
import { checkVaultKey, sealVaultKeyCheck, type VaultKeyRefusalReason } from './vault_key_check.ts';
import { Vault } from '../kernel/vault.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import type { Clock } from '../kernel/clock.ts';
import { MCP_CLIENT_DOCUMENT_PATH } from '../../shared/wire/mcp/mcp_clients.ts';

export interface StartInput {
  readonly database: Database;
  readonly clock: Clock;
  readonly turns: Turns;
  /** How waiting sidecars are looked up; default: each by itself. */
  readonly policyLooks?: PolicyLooks | undefined;
  readonly outbound: Outbound;
  /** The ways to sign in; without it, only by a link in local mode. */
  readonly signIn?: SignInSettings | undefined;
  /** Receives warnings. */
  readonly log?: ((problem: StartWarning) => void) | undefined;
  /** Shows a mail to the person who started the program, in local mode without another way to send mail. */
  readonly printMail?: PrintMail | undefined;
  /** The MCP registry of the marketplace; default: the public one. */
  readonly registry?: RegistryInput | undefined;
  /** Where the heads of the audit log are sent; default: nowhere. */
  readonly anchors?: AnchorSettings | undefined;
  /** Days after which audit events are removed; default: never. */
  readonly auditRetentionDays?: number | undefined;
  readonly lifetime: Lifetime;
  /** Default: the limits of the design. */
  readonly limits?: ApiLimits | undefined;
  /** Of one enterprise; absent: no limit, as in local mode. */
  readonly callsPerMinute?: number | undefined;
  /** How much people and enterprises may keep, in percent of the defaults; default: as much. */
  readonly quotaPercent?: number | undefined;
  /** The master key, if there is one. */
  readonly masterKey: Secret | null;
  /** A master key that only opens: the previous one, during a key change. */
  readonly previousMasterKey?: Secret | null | undefined;
  /** Creates and stores a master key. Called only if there is none and the database was never used with one. */
  readonly makeMasterKey: (() => Promise<Secret>) | null;
  /**
   * Reads the stored master key again if there was none but the database was used with one: a program that started at the
   * same time has stored both since.
   */
  readonly rereadMasterKey?: (() => Promise<Secret | null>) | undefined;
  /** The key of the local user; null if hosted. */
  readonly localKey: Secret | null;
  /** The words that call svc on the machine of local mode; default: `svc`. */
  readonly command?: readonly string[] | undefined;
  /** The origin in links and tokens. Required if hosted with sign-in; without it no tokens are issued. */
  readonly publicUrl?: string | undefined;
  /** The client metadata document for sign-ins to remote MCP servers; default: its own, if it is hosted under https. */
  readonly mcpClientUrl?: string | undefined;
}

interface RegistryInput {
  readonly url?: string | undefined;
  /** How long a request may keep syncing the mirror after its reply; default: until the program ends. */
  readonly syncMs?: number | undefined;
}

/** Warnings that do not prevent the start. */
type StartWarning = Readonly<Record<'level' | 'message' | 'code', string>>;

/** Why the control plane does not start. */
type StartRefusalReason = 'invalid_setting' | VaultKeyRefusalReason | MigrationRefusalReason;

/**
 * Prepares the database and opens the vault. A wrong or missing master key is an error: a key is never created if data
 * is sealed with another one.
 */
export async function start(input: StartInput): Promise<Result<ProgramContext, Refusal<StartRefusalReason>>> {
  const { clock, turns, outbound, lifetime, callsPerMinute } = input;
  const migrated = await migrate(input.database.client, nowText(input));
  if (!migrated.ok) return migrated;
  const signIn = configureSignIn(input.signIn, {
    outbound,
    isLocal: input.localKey !== null,
    printMail: input.printMail ?? null,
    publicUrl: input.publicUrl ?? null,
    clock,
  });
  if (!signIn.ok) return err({ reason: 'invalid_setting', message: signIn.error });
  const opened = await openVault(input);
  if (!opened.ok) return opened;
  const { vault, controlPlane } = opened.value;
  for (const chain of await takeOverAudit(input.database, vault)) input.log?.(unsealedChainWarning(chain));
  const local = input.localKey === null ? null : await localMode(input, input.localKey, opened.value);
  const openCalls = new OpenCalls(() => clock.now());
  const publicUrl = input.publicUrl ?? null;
  const database = withSealGuard(input.database, vault);
  const accessKeys = new AccessKeys(vault, clock);
  const registry = openRegistry(input.registry?.url ?? DEFAULT_REGISTRY_URL, input.registry?.syncMs ?? null);
  const made = {
    database,
    vault,
    controlPlane,
    accessKeys,
    clock,
    turns,
    policyLooks: input.policyLooks ?? new OwnLooks(clock),
    outbound,
    mail: signIn.value.mail,
    openCalls,
    seenEnds: new SeenEnds(clock),
    narrowedMints: new CallRate<'mint'>(() => clock.now(), NARROWED_MINTS_PER_MINUTE),
    callRate: local === null && callsPerMinute !== undefined ? new CallRate(() => clock.now(), callsPerMinute) : null,
    local,
    publicUrl,
    mcpClientUrl: input.mcpClientUrl ?? (local === null ? ownClientUrl(publicUrl) : null),
    registry,
    anchors: input.anchors ?? null,
    auditRetentionDays: input.auditRetentionDays ?? null,
    limits: input.limits ?? DEFAULT_LIMITS,
    quotaPercent: input.quotaPercent ?? DEFAULT_QUOTA_PERCENT,
  };
  return ok({ ...made, defer: lifetime.defer, stopping: lifetime.stopping, signIn: signIn.value });
}

/** Of one secret: a session mints one at its start, and one every five minutes. More would be a flood at the provider. */
export const NARROWED_MINTS_PER_MINUTE = 60;

/** Authorization servers fetch the document by https. */
function ownClientUrl(publicUrl: string | null): string | null {
  return publicUrl?.startsWith('https:') === true ? publicUrl + MCP_CLIENT_DOCUMENT_PATH : null;
}

/** The installation's stored values, opened with its keys. */
interface Opened {
  readonly vault: Vault;
  readonly controlPlane: ControlPlane;
  readonly installed: ReadonlyMap<string, string>;
}

function unsealedChainWarning({ enterpriseId, writer }: UnsealedChain): StartWarning {
  const message = `the audit chain of ${writer} (enterprise ${enterpriseId}) did not verify when its seals were renewed, so it got no new seal: svc audit verify shows where it breaks`;
  return { level: 'error', message, code: 'audit_chain_broken' };
}

async function openVault(input: StartInput): Promise<Result<Opened, Refusal<StartRefusalReason>>> {
  const before = await readInstallation(input.database);
  const isNew = !before.has('vault_key_check');
  if (isNew && (await hasSecrets(input.database))) return err({ reason: 'database_damaged', message: CHECK_LOST });
  const masterKey = input.masterKey ?? (await (isNew ? input.makeMasterKey?.() : input.rereadMasterKey?.())) ?? null;
  if (masterKey === null) return err({ reason: 'missing_vault_key', message: isNew ? NO_KEY : KEY_LOST });
  const vault = await Vault.open(masterKey, input.previousMasterKey ?? null);
  if (!isNew) return checkKeys(vault, before);
  await installKeys(input, vault);
  return checkKeys(vault, await readInstallation(input.database));
}

const NO_KEY =
  'no vault key: set SVC_VAULT_KEY to 32 random bytes as base64url, and keep a copy: without it the vault is lost';
const KEY_LOST =
  'missing vault key: this database has a key that is not here; restore it as $SVC_HOME/vault.key, or set SVC_VAULT_KEY';
const CHECK_LOST =
  'the database holds secrets, but not the check of their vault key: restore the whole database from a backup (nothing was changed)';

/**
 * Two programs that start at once both get here. One write succeeds, and the other program's key is checked against it.
 */
async function installKeys(input: StartInput, vault: Vault): Promise<void> {
  const { database } = input;
  const check = await sealVaultKeyCheck(vault);
  const key = await makeControlKey(vault);
  await writeOrYield(database, [
    setOnce(database, 'vault_key_check', check),
    setOnce(database, 'control_plane_id', freshId(input, 'cpl')),
    setOnce(database, 'signing_key_public', key.publicKey),
    setOnce(database, 'signing_key_sealed', key.sealedPrivateKey),
  ]);
}

async function checkKeys(
  vault: Vault,
  installed: ReadonlyMap<string, string>,
): Promise<Result<Opened, Refusal<StartRefusalReason>>> {
  const problem = await checkVaultKey(vault, installed);
  if (problem !== null) return err(problem);
  const stored = {
    publicKey: installed.get('signing_key_public') ?? '',
    sealedPrivateKey: installed.get('signing_key_sealed') ?? '',
  };
  const controlPlane = await openControlPlane(installed.get('control_plane_id') ?? '', stored, vault);
  if (controlPlane === null) throw new Error('the signing key of this control plane is damaged in the database');
  return ok({ vault, controlPlane, installed });
}

async function localMode(input: StartInput, localKey: Secret, { installed, vault }: Opened): Promise<LocalMode> {
  const keyHash = await sha256Base64Url(localKey.reveal());
  const userId =
    installed.get('local_user_id') ?? (await installOnce(input, 'local_user_id', () => installLocalUser(input, vault)));
  const consoleHost =
    installed.get('console_host') ?? (await installOnce(input, 'console_host', () => installConsoleHost(input)));
  return { userId, keyHash, consoleHost, command: input.command ?? ['svc'] };
}

/** Values of the installation, created by this program or by another one that starts at the same time. */
async function installOnce(
  { database }: StartInput,
  name: InstallationName,
  install: () => Promise<void>,
): Promise<string> {
  await install();
  const value = (await readInstallation(database)).get(name);
  if (value === undefined) throw new Error(`writing ${name} failed`);
  return value;
}

/** Gives the console its own host name. Earlier sessions end: their cookies were also sent to other servers. */
async function installConsoleHost({ database }: StartInput): Promise<void> {
  const label = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0'));
  const host = `svc-${label.join('')}.localhost`;
  await writeOrYield(database, [setOnce(database, 'console_host', host), ...deleteAllSessions(database)]);
}

async function installLocalUser(input: StartInput, vault: Vault): Promise<void> {
  const { database } = input;
  const createdAt = nowText(input);
  const enterprise = { id: freshId(input, 'ent'), slug: 'local', name: 'Local', policyVersion: 0, createdAt };
  const user = {
    id: freshId(input, 'usr'),
    enterpriseId: enterprise.id,
    email: null,
    displayName: 'Local owner',
    role: 'owner' as const,
    suspendedAt: null,
    policyVersion: 0,
    createdAt,
  };
  await writeOrYield(database, [
    setOnce(database, 'local_user_id', user.id),
    ...insertAccount(database, { person: { id: freshId(input, 'per'), createdAt }, user, enterprise }),
    ...(await beginEnterprise(database, vault, enterprise.id)),
  ]);
}

/** A conflict means that another program that starts at the same time has written everything. */
async function writeOrYield(database: Database, statements: readonly Statement[]): Promise<void> {
  await database.write(statements);
}
