import type { SecretScope } from '../../shared/wire/sources/narrowing.ts';
import type { SdkEndpoint } from '../../shared/net/sdk_endpoints.ts';
import type { AllowList, Egress } from '../../shared/model/egress.ts';
import type { RequestLimits } from '../../shared/model/host_binding.ts';
import type { ChosenSecret } from '../../shared/model/account_choice.ts';
import type { ContainerRuntime } from '../engine/container_runtime.ts';
import type { EngineName } from '../engine/engine_address.ts';
import type { DisabledReason } from './launch_mode.ts';
import type { SandboxMode } from './launch_mode.ts';
import type { SignalSource } from '../engine/run_child.ts';
import type { UnsealedCredential } from './unsealed.ts';

/** The process that owns a session: the session ends with it. */
export interface SessionOwner {
  readonly pid: number;
  readonly started: string | null;
}

export interface NewSandboxSession {
  readonly name: string | null;
  readonly ttlSeconds: number | null;
  /** The session ends with it; a detached one only until its listener is open. */
  readonly owner: SessionOwner | null;
  readonly image: string;
  readonly imageId: string;
  readonly runtime: { readonly program: EngineName; readonly endpoint: string };
  readonly detached: boolean;
  readonly egress: Egress;
  /** Set if the egress is `sealed`; for `sealed,public` only with named hosts. */
  readonly allowList: AllowList | null;
  /** The hosts that it may send plain requests to. */
  readonly plainHttp?: AllowList | undefined;
  /** Hosts at other ports than 443, where the list does not limit the session. */
  readonly otherPorts?: AllowList | undefined;
  /** Used where a host is bound to several secrets. */
  readonly secrets?: readonly ChosenSecret[];
  /** What it does less with minted secrets. */
  readonly scopes?: readonly SecretScope[];
  /** How many of its requests may get a credential; absent: any number. */
  readonly limits?: RequestLimits;
  readonly unsealed: readonly UnsealedCredential[];
  /** Names or ids of the MCP servers that the agent may use. */
  readonly mcpServers: readonly string[];
}

/** A session of the sidecar for a container. */
export interface SandboxSession {
  readonly sessionId: string;
  readonly token: string | null;
  /** As the container reaches it. */
  readonly proxyUrl: string;
  readonly listener: 'namespace' | 'gateway';
  /** On the host; the only file of the session that a container sees. */
  readonly caPemPath: string;
  readonly sentinels: readonly { readonly env: string; readonly value: string }[];
  readonly sdkEndpoints?: readonly SdkEndpoint[];
}

/** The sidecar's local API, as launches use it. A refusal is thrown with its message. */
export interface SandboxSessions {
  create(wanted: NewSandboxSession): Promise<SandboxSession>;
  /** Called before the container starts, so that the sidecar finds it after a crash. */
  recordContainer(sessionId: string, containerId: string): Promise<void>;
  /** Opens the proxy in the network of the container whose first process this is. */
  openListener(sessionId: string, pid: number, relay: boolean): Promise<void>;
  /** Returns the value after its use was recorded. */
  unseal(sessionId: string, credential: UnsealedCredential): Promise<string>;
  recordDisabled(reason: DisabledReason, mode: SandboxMode, image: string | null): Promise<void>;
  /** Ends a session; succeeds if it no longer exists. */
  end(sessionId: string): Promise<void>;
}

/** The dependencies of a launch. */
export interface LaunchPorts {
  readonly runtime: ContainerRuntime;
  readonly sessions: SandboxSessions;
  readonly signals: SignalSource;
  readonly warn: (text: string) => void;
  readonly pause: (ms: number) => Promise<void>;
}
