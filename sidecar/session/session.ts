import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { PlanLockPayload } from '../../shared/wire/plan/plan_lock.ts';
import { newId } from '../../shared/wire/ids.ts';
import type { RequestLimits } from '../../shared/model/host_binding.ts';
import { allowedHosts, type AllowedHosts } from '../../shared/resolve/admitted_host.ts';
import type { AccountChoice } from '../../shared/model/account_choice.ts';
import type { SecretScope } from '../../shared/wire/sources/narrowing.ts';
import type { AllowList, Egress } from '../../shared/model/egress.ts';
import type { LiveSession, PlainHttp, ServedServer } from '../ports.ts';
import type { SessionCa } from '../tls/session_ca.ts';
import { type CloseTunnel, OpenTunnels } from './open_tunnels.ts';
import type { ProcessIdentity } from '../../machine/process_identity.ts';
import type { ContainerListener, HostSandbox, PausedUse, Sandbox, UnsealedCredential } from './sandbox.ts';
import type { CapturedLogin } from './session_login.ts';
import { StepScope, type StepReach } from './step_scope.ts';
import { newToken, isSameHash, tokenHash } from './token.ts';

/** The parts of a session. */
interface SessionFacts {
  readonly id: string;
  readonly name: string | null;
  /** Where it was started, as the launcher said; null if it did not say. */
  readonly folder?: string | null;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly expiresAt: number;
  /** True if it lives as long as its owner: then `expiresAt` moves on while the owner runs. */
  readonly renews: boolean;
  readonly ca: SessionCa;
  readonly directory: string;
  /** The SHA-256 of its token. Null for a plan: the session itself opens no tunnel, only its steps' scopes do. */
  readonly tokenHash: Buffer | null;
  readonly maxTunnels: number;
  /** The session ends when this process exits. */
  readonly owner: ProcessIdentity | null;
  readonly sandbox: Sandbox | null;
  /** A sandbox without an engine; null or absent: none. */
  readonly hostSandbox?: HostSandbox | null;
  /** Null: it reaches every host, unless its sandbox is sealed. */
  readonly allowList: AllowList | null;
  /** Hosts that it may send plain requests to; null: none. */
  readonly plainHttp: AllowList | null;
  /** Hosts at other ports than 443; null: none. */
  readonly otherPorts: AllowList | null;
  readonly selfTest: boolean;
  /** Null: it has chosen no account. */
  readonly choice: AccountChoice | null;
  /** What it does less with some secrets; absent: nothing. */
  readonly scopes?: readonly SecretScope[];
  /** How many of its requests may get a credential; absent: any number. */
  readonly limits?: RequestLimits;
  readonly unsealed: readonly UnsealedCredential[];
  /** Ids of the MCP servers that its token may use; null: every one. */
  readonly mcpServers: readonly string[] | null;
  /** The verified lock, for a plan. */
  readonly lock: PlanLockPayload | null;
  /** The login that it was started for. */
  readonly login?: CapturedLogin | null;
  /** The MCP server that its container runs. */
  readonly mcpServer?: ServedServer | null;
}

/** A scope and its token. The token is returned once and kept only as a hash. */
export interface CreatedScope {
  readonly scope: StepScope;
  readonly token: string;
}

/** A sealed session without a list of its own. */
const NOTHING_MORE: AllowList = { hosts: [], named: [] };

/** One launch. Its token opens the proxy until the session ends or expires. */
export class Session implements LiveSession {
  readonly id: string;
  readonly name: string | null;
  readonly folder: string | null;
  readonly createdAt: number;
  readonly renews: boolean;
  readonly ca: SessionCa;
  readonly directory: string;
  readonly sandbox: Sandbox | null;
  readonly hostSandbox: HostSandbox | null;
  /** Null, or with `sealed,public`: it reaches every host. */
  readonly allowList: AllowList | null;
  readonly named: ReadonlySet<string>;
  readonly allowed: AllowedHosts | null;
  /** As it was given. */
  readonly plainHttpList: AllowList | null;
  /** As it was given. */
  readonly otherPortsList: AllowList | null;
  readonly otherPorts: AllowedHosts | null;
  readonly plainHttp: PlainHttp | null;
  readonly selfTest: boolean;
  readonly choice: AccountChoice | null;
  readonly scopes: readonly SecretScope[];
  readonly limits: RequestLimits;
  readonly mcpServers: readonly string[] | null;
  readonly lock: PlanLockPayload | null;
  readonly login: CapturedLogin | null;
  readonly mcpServer: ServedServer | null;
  /** Null once the container continues without it. */
  owner: ProcessIdentity | null;
  /** The engine's id of its container; null before it exists. */
  containerId: string | null = null;
  /** The container's first process; null before it has started, and in a virtual machine, whose processes are not here. */
  container: ProcessIdentity | null = null;
  /** True once the engine has said that the container in its virtual machine has ended. */
  containerIsOver = false;
  /** How the container reaches the proxy; null before its listener is open. */
  listener: ContainerListener | null = null;
  /** The container that carries its connections to the proxy (decision 0127); null if it needs none. */
  companion: string | null = null;
  /** Bindings that a person has to resume before the session may use them. */
  paused: readonly PausedUse[] = [];
  /** Of its events so far; null if they are not known, because an earlier run of the sidecar recorded some. */
  reasons: Set<string> | null = null;
  #expiresAt: number;
  readonly #tokenHash: Buffer | null;
  readonly #tunnels: OpenTunnels;
  readonly #scopes = new Map<string, StepScope>();
  readonly #unsealed: UnsealedCredential[];
  #atEnd: (() => void | Promise<void>)[] = [];

  constructor(facts: SessionFacts) {
    this.id = facts.id;
    this.name = facts.name;
    this.folder = facts.folder ?? null;
    this.createdAt = facts.createdAt;
    this.#expiresAt = facts.expiresAt;
    this.renews = facts.renews;
    this.ca = facts.ca;
    this.directory = facts.directory;
    this.sandbox = facts.sandbox;
    this.hostSandbox = facts.hostSandbox ?? null;
    this.allowList = facts.allowList ?? (this.egress === 'sealed' ? NOTHING_MORE : null);
    const isLimited = this.egress !== 'sealed,public';
    this.allowed =
      isLimited && this.allowList !== null ? allowedHosts(this.allowList.hosts, this.allowList.named) : null;
    this.otherPortsList = facts.otherPorts;
    this.otherPorts = facts.otherPorts === null ? null : allowedHosts(facts.otherPorts.hosts, facts.otherPorts.named);
    this.named = new Set([...(this.allowList?.named ?? []), ...(facts.otherPorts?.named ?? [])]);
    this.plainHttpList = facts.plainHttp;
    this.plainHttp =
      facts.plainHttp === null
        ? null
        : {
            allowed: allowedHosts(facts.plainHttp.hosts, facts.plainHttp.named),
            named: new Set(facts.plainHttp.named),
          };
    this.selfTest = facts.selfTest;
    this.choice = facts.choice;
    this.scopes = facts.scopes ?? [];
    this.limits = facts.limits ?? {};
    this.mcpServers = facts.mcpServers;
    this.lock = facts.lock;
    this.login = facts.login ?? null;
    this.mcpServer = facts.mcpServer ?? null;
    this.owner = facts.owner;
    this.#unsealed = [...facts.unsealed];
    this.#tokenHash = facts.tokenHash;
    this.#tunnels = new OpenTunnels(facts.maxTunnels);
  }

  /** Milliseconds since the epoch. */
  get expiresAt(): number {
    return this.#expiresAt;
  }

  get tokenHash(): Buffer | null {
    return this.#tokenHash;
  }

  /** True if its time is up. One that renews ends only with its owner. */
  isOver(now: number): boolean {
    return !this.renews && now >= this.#expiresAt;
  }

  /** Moves the end of a session that renews. */
  renew(until: number): void {
    if (this.renews) this.#expiresAt = Math.max(this.#expiresAt, until);
  }

  get caPemPath(): string {
    return this.ca.caPemPath;
  }

  get caBundlePath(): string {
    return join(this.directory, 'bundle.pem');
  }

  get openTunnels(): number {
    return this.#tunnels.count;
  }

  /** What its sandbox lets out; null: it has none. */
  get egress(): Egress | null {
    return this.sandbox?.egress ?? this.hostSandbox?.egress ?? null;
  }

  get sealed(): boolean {
    return this.egress !== null && this.egress !== 'open';
  }

  get ended(): boolean {
    return this.#tunnels.ended;
  }

  get unsealed(): readonly UnsealedCredential[] {
    return this.#unsealed;
  }

  /** True if `hash` is the SHA-256 of the session's token. Compares in constant time. */
  holdsTokenOf(hash: Buffer): boolean {
    return this.#tokenHash !== null && isSameHash(this.#tokenHash, hash);
  }

  /** The open scope with this token hash. */
  scopeOf(hash: Buffer, now: number): StepScope | null {
    let found: StepScope | null = null;
    for (const scope of this.#scopes.values()) if (scope.isOpenedBy(hash, now)) found = scope;
    return found;
  }

  /** An open scope. */
  scope(scopeId: string): StepScope | null {
    return this.#scopes.get(scopeId) ?? null;
  }

  /** Mints a step's credential. It lives for the step's timeout, and no longer than the session. */
  openScope(step: StepReach, now: number): CreatedScope {
    const token = newToken('scope');
    const stepEnd = now + step.timeoutSeconds * 1000;
    const expiresAt = this.renews ? stepEnd : Math.min(stepEnd, this.expiresAt);
    const scopeId = newId('scp', randomBytes(16), now);
    const scope = new StepScope({ scopeId, step, session: this, tokenHash: tokenHash(token), expiresAt });
    this.#scopes.set(scopeId, scope);
    scope.endAfter(expiresAt - now, () => void this.endScope(scopeId));
    return { scope, token };
  }

  /** Revokes a scope and closes its tunnels. False if there is no such scope. */
  async endScope(scopeId: string): Promise<boolean> {
    const scope = this.#scopes.get(scopeId);
    if (scope === undefined) return false;
    this.#scopes.delete(scopeId);
    await scope.end();
    return true;
  }

  openTunnel(close: CloseTunnel): (() => void) | null {
    return this.#tunnels.open(close);
  }

  onTunnelsClosed(close: () => void): () => void {
    return this.#tunnels.onClosed(close);
  }

  /** Closes the open tunnels; the session continues. */
  closeTunnels(): Promise<void> {
    return this.#tunnels.closeAll();
  }

  /** Ends expired scopes by the clock, because a timer stands still while the machine sleeps. */
  async endScopesOver(now: number): Promise<void> {
    const over = [...this.#scopes.values()].filter(({ expiresAt }) => now >= expiresAt);
    await Promise.all(over.map(({ scopeId }) => this.endScope(scopeId)));
  }

  /** Records once that the container gets a credential. */
  noteUnsealed(credential: UnsealedCredential): void {
    const known = this.#unsealed.some(
      ({ env, reference, host }) =>
        env === credential.env && reference === credential.reference && host === credential.host,
    );
    if (!known) this.#unsealed.push(credential);
  }

  /** Registers something to close with the session; closes it at once if the session has ended. */
  onEnd(close: () => void | Promise<void>): void {
    if (this.ended) void close();
    else this.#atEnd.push(close);
  }

  /** Closes every tunnel and listener. The CA and its files stay, for the next run of the sidecar. */
  async close(): Promise<void> {
    const scopes = [...this.#scopes.keys()].map((id) => this.endScope(id));
    const atEnd = this.#atEnd;
    this.#atEnd = [];
    await Promise.allSettled([this.#tunnels.end(), ...scopes, ...atEnd.map(async (close) => close())]);
  }

  /** Closes every tunnel and forgets the CA and its key. */
  async end(): Promise<void> {
    await this.close();
    await this.ca.dispose();
    await rm(this.caBundlePath, { force: true });
  }
}
