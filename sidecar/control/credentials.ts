import { mcpCredentialAt } from '../../shared/model/mcp_server.ts';
import { programOfLogin } from '../../shared/model/connector.ts';
import { parseSharedPath, SHARED_SECRET_MISSING } from '../../shared/model/vault_path.ts';
import type { CredentialRef, Owner } from '../../shared/model/host_binding.ts';
import { refusal, type Refusal } from '../../shared/model/refusal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { leftUntil, type Moment, momentAt, readClocks, type TwoClocks } from '../../shared/model/clock.ts';
import type { CredentialUse } from '../../shared/borrow/borrow_grant.ts';
import type { BorrowedCredentials } from '../borrow/borrowed_credentials.ts';
import type { CredentialSource, ReleasedCredential } from '../ports.ts';
import { type ChannelFailure, unavailableRefusal } from './channel_failure.ts';
import { CONNECTORS_PREFIX, isOfConnector, mayAskProvider } from './connector_reference.ts';
import type { ControlChannel, CredentialsReply, CredentialVersion } from './control_channel.ts';
import type { Link } from './link.ts';

interface CredentialCacheOptions extends TwoClocks {
  readonly channel: Pick<ControlChannel, 'credentials'>;
  readonly link: Pick<Link, 'onUp' | 'onRevoked'>;
  readonly credentialCacheSeconds: number;
  /** The values that programs of this machine give. */
  readonly borrowed?: Pick<BorrowedCredentials, 'includes' | 'resolve' | 'useVersions'>;
}

type Resolved = Result<ReleasedCredential, Refusal>;

interface Entry {
  readonly ref: CredentialRef;
  readonly resolved: Resolved;
  readonly goodUntil: Moment;
  /** From this time on a use also requests the value again, so that the new one is there before this one expires. */
  refreshAt: number;
}

/** A requested reference, and everybody who waits for it. */
class Asked {
  readonly ref: CredentialRef;
  /** How many calls have asked for it. */
  calls = 0;
  readonly answer: Promise<Resolved>;
  #settle: ((resolved: Resolved) => void) | null = null;

  constructor(ref: CredentialRef) {
    this.ref = ref;
    this.answer = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  settle(resolved: Resolved): void {
    this.#settle?.(resolved);
  }
}

/** The most references in one call; a larger number is split into several. */
const MAX_BATCH = 100;
/** While the policy changes during each call, so often is asked. */
const MOST_CALLS = 3;
/** A missing credential is requested again after this time, or when a new snapshot arrives. */
const MISSING_MS = 1_000;
/** While the control plane is down, the shortest time between two requests for one reference. */
const DOWN_MS = 250;
const REFRESH_RETRY_MS = 10_000;
const REFRESH_FRACTION = 0.6;
/** The control plane refreshes an access token a minute before it expires, so a request from here on gets the next one. */
const TOKEN_REFRESH_MS = 50_000;

/**
 * Caches credentials in memory for at most `credentialCacheSeconds`. Simultaneous misses share one call, except those that
 * may need a provider, and concurrent requests for one reference share its lookup. While the control plane is down a
 * credential is served until its cache time ends; an access token or minted value never after it expires.
 */
export class CredentialCache implements CredentialSource {
  readonly #options: CredentialCacheOptions;
  readonly #entries: Readonly<Record<Owner, Map<string, Entry>>> = { personal: new Map(), enterprise: new Map() };
  readonly #asked: Readonly<Record<Owner, Map<string, Asked>>> = { personal: new Map(), enterprise: new Map() };
  #batch: Asked[] = [];
  /** From the newest snapshot; null before the first. */
  #versions: Readonly<Record<Owner, Map<string, string>>> | null = null;
  #minted: Readonly<Record<Owner, Set<string>>> = { personal: new Set(), enterprise: new Set() };
  /** Counts the snapshots, so that a reply can tell whether one arrived in the meantime. */
  #generation = 0;
  /** Counts the times when everything was dropped. */
  #drops = 0;

  constructor(options: CredentialCacheOptions) {
    this.#options = options;
    options.link.onUp(() => this.#forgetRefusals());
    options.link.onRevoked(() => this.dropAll());
  }

  resolve(ref: CredentialRef, use: CredentialUse | null = null): Resolved | Promise<Resolved> {
    const { borrowed } = this.#options;
    if (borrowed?.includes(ref) === true) return borrowed.resolve(ref, use);
    const now = this.#options.clock.now();
    const entry = this.#entries[ref.owner].get(ref.path);
    if (entry === undefined || leftUntil(entry.goodUntil, this.#options) <= 0) return this.#ask(ref);
    if (now >= entry.refreshAt) this.#refresh(entry, now);
    return entry.resolved;
  }

  isStored(ref: CredentialRef): boolean {
    return this.findStoredVersion(ref) !== null;
  }

  /** The version of the stored value in the current policy; null if there is none. */
  findStoredVersion(ref: CredentialRef): string | null {
    return this.#versions?.[ref.owner].get(ref.path) ?? null;
  }

  /** Drops the credentials that the newest snapshot changed or removed. */
  useVersions(credentials: readonly CredentialVersion[]): void {
    const versions = { personal: new Map<string, string>(), enterprise: new Map<string, string>() };
    const minted = { personal: new Set<string>(), enterprise: new Set<string>() };
    for (const { owner, path, version, minted: isMinted } of credentials) {
      versions[owner].set(path, version);
      if (isMinted === true) minted[owner].add(path);
    }
    this.#options.borrowed?.useVersions(credentials.filter(({ borrowed }) => borrowed === true));
    this.#versions = versions;
    this.#minted = minted;
    this.#generation += 1;
    for (const entry of this.#allEntries()) {
      if (!this.#isNewest(entry.ref, entry.resolved)) this.#entries[entry.ref.owner].delete(entry.ref.path);
    }
  }

  /** Drops every credential, also pending ones. */
  dropAll(): void {
    this.#drops += 1;
    this.useVersions([]);
  }

  #allEntries(): Entry[] {
    return [...this.#entries.personal.values(), ...this.#entries.enterprise.values()];
  }

  #forgetRefusals(): void {
    for (const { ref, resolved } of this.#allEntries()) {
      if (!resolved.ok) this.#entries[ref.owner].delete(ref.path);
    }
  }

  #isNewest(ref: CredentialRef, resolved: Resolved): boolean {
    return resolved.ok && this.#versions?.[ref.owner].get(ref.path) === resolved.value.version;
  }

  #refresh(entry: Entry, now: number): void {
    entry.refreshAt = now + REFRESH_RETRY_MS;
    void this.#ask(entry.ref);
  }

  #ask(ref: CredentialRef): Promise<Resolved> {
    const already = this.#asked[ref.owner].get(ref.path);
    if (already !== undefined) return already.answer;
    const asked = new Asked(ref);
    this.#asked[ref.owner].set(ref.path, asked);
    this.#send(asked);
    return asked.answer;
  }

  #send(asked: Asked): void {
    this.#batch.push(asked);
    if (this.#batch.length === 1) setImmediate(() => this.#sendBatch());
  }

  /** A reference that may need a provider gets its own call, so that a slow provider delays nothing else. */
  #sendBatch(): void {
    const isSlow = ({ ref }: Asked) => mayAskProvider(ref) || this.#isMinted(ref);
    const batch = this.#batch.filter((asked) => !isSlow(asked));
    for (const asked of this.#batch.filter(isSlow)) void this.#fetch([asked]);
    this.#batch = [];
    for (let start = 0; start < batch.length; start += MAX_BATCH) {
      void this.#fetch(batch.slice(start, start + MAX_BATCH));
    }
  }

  #isMinted({ owner, path }: CredentialRef): boolean {
    return this.#minted[owner].has(path);
  }

  async #fetch(batch: readonly Asked[]): Promise<void> {
    const askedAt = readClocks(this.#options);
    const generation = this.#generation;
    const drops = this.#drops;
    const reply = await this.#options.channel.credentials(
      batch.map(({ ref }) => (this.#isMinted(ref) ? { ...ref, minted: true } : ref)),
    );
    const answers = reply.ok ? answersOf(reply.value) : null;
    for (const asked of batch) {
      const { owner, path } = asked.ref;
      asked.calls += 1;
      const answered =
        answers?.[owner].get(path) ?? (reply.ok ? missingCredential(asked.ref) : failedCredential(reply.error));
      const isCurrent = this.#isCurrent(asked.ref, answered, generation);
      const isDropped = drops !== this.#drops;
      if (answered.ok && !isCurrent && !isDropped && asked.calls < MOST_CALLS) {
        this.#send(asked);
        continue;
      }
      const isRefused = answered.ok && (!isCurrent || isDropped);
      const resolved = isRefused ? overtaken(asked.ref, isDropped) : this.#withEnd(asked.ref, answered, askedAt);
      this.#asked[owner].delete(path);
      if (isCurrent && !isDropped) this.#keep(asked.ref, resolved, askedAt, reply.ok ? MISSING_MS : DOWN_MS);
      asked.settle(resolved);
    }
  }

  /**
   * Whether the newest snapshot may not contradict a reply: none arrived since the call was sent, or it has this version. Else the
   * value may have been removed, or its user revoked: it is neither cached nor given to those who wait, but asked for again.
   */
  #isCurrent(ref: CredentialRef, resolved: Resolved, generation: number): boolean {
    return generation === this.#generation || this.#isNewest(ref, resolved);
  }

  /** An answer with its end by each clock; a refusal if that has come. */
  #withEnd(ref: CredentialRef, answered: Resolved, askedAt: Moment): Resolved {
    if (!answered.ok || answered.value.expiresAt === undefined) return answered;
    const end = momentAt(answered.value.expiresAt, askedAt);
    const hasEnded = (): boolean => leftUntil(end, this.#options) <= 0;
    return hasEnded() ? tokenOver(ref) : ok({ ...answered.value, hasEnded });
  }

  #keep(ref: CredentialRef, resolved: Resolved, askedAt: Moment, refusalMs: number): void {
    const entries = this.#entries[ref.owner];
    const held = entries.get(ref.path);
    const isHeld = held?.resolved.ok === true && leftUntil(held.goodUntil, this.#options) > 0;
    if (isHeld && !resolved.ok && resolved.error.reason === 'control_plane_unavailable') return;
    const lifetimeMs = resolved.ok ? this.#options.credentialCacheSeconds * 1000 : refusalMs;
    const tokenEnd = (resolved.ok ? resolved.value.expiresAt : undefined) ?? Number.POSITIVE_INFINITY;
    entries.set(ref.path, {
      ref,
      resolved,
      goodUntil: momentAt(Math.min(askedAt.wall + lifetimeMs, tokenEnd), askedAt),
      refreshAt: resolved.ok
        ? Math.min(askedAt.wall + lifetimeMs * REFRESH_FRACTION, tokenEnd - TOKEN_REFRESH_MS)
        : Number.POSITIVE_INFINITY,
    });
  }
}

function answersOf(reply: CredentialsReply): Readonly<Record<Owner, ReadonlyMap<string, Resolved>>> {
  const answers = { personal: new Map<string, Resolved>(), enterprise: new Map<string, Resolved>() };
  for (const { ref, credential } of reply.released) answers[ref.owner].set(ref.path, ok(credential));
  for (const { ref, refusal: why } of reply.unavailable) answers[ref.owner].set(ref.path, err(why));
  return answers;
}

function missingCredential(ref: CredentialRef): Resolved {
  if (parseSharedPath(ref.path) !== null) return err(refusal('credential_unavailable', SHARED_SECRET_MISSING));
  const message = `The vault has no ${ref.owner} secret vault://${ref.path}. Store it with: ${storeCommand(ref)}`;
  return err(refusal('credential_unavailable', message));
}

function storeCommand(ref: CredentialRef): string {
  const fqn = isOfConnector(ref) ? ref.path.slice(CONNECTORS_PREFIX.length) : null;
  const program = fqn === null ? null : programOfLogin(fqn);
  if (program !== null) return `svc login ${program} --import`;
  if (fqn !== null) return `svc connector credential set ${fqn}`;
  const mcp = mcpCredentialAt(ref.path);
  return mcp === null ? `svc secret set ${ref.path}` : `svc mcp credential set ${mcp.serverId} ${mcp.name}`;
}

/** An expired token is never sent, even if the control plane considers it valid: the two clocks may differ. */
function tokenOver({ path }: CredentialRef): Resolved {
  const message = `The access token of vault://${path} that the control plane sent has expired. Compare this machine's clock with the control plane's, and try again.`;
  return err(refusal('credential_unavailable', message));
}

function overtaken({ path }: CredentialRef, isDropped: boolean): Resolved {
  const message = isDropped
    ? `vault://${path} is not used any more: the session has ended, or this sidecar was revoked or is stopping.`
    : `vault://${path} was changed several times while this request waited for it; send the request again.`;
  return err(refusal('credential_unavailable', message));
}

function failedCredential(error: ChannelFailure): Resolved {
  return err(unavailableRefusal(error));
}
