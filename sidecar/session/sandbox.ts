import { z } from 'zod';
import type { EngineName } from '../../sandbox/engine/engine_address.ts';
import { SANDBOX_FOLDER_NAME } from '../../sandbox/bubblewrap/sandbox_folder.ts';
import { type Egress, EGRESS_MODES } from '../../shared/model/egress.ts';

/** A credential that the container gets in plaintext, because no binding can complete its requests (specification section 2). */
export interface UnsealedCredential {
  /** The environment variable that holds it. */
  readonly env: string;
  /** `vault://...` */
  readonly reference: string;
  readonly host: string;
  /** Why it could not be sealed. */
  readonly reason: string;
}

/** The container engine of a session: its program and its local socket. */
export interface EngineAddress {
  readonly program: EngineName;
  /** `unix:///...` or `podman:/...` */
  readonly endpoint: string;
}

/** Where a session's container reaches the proxy. */
export interface ContainerListener {
  readonly listener: 'namespace' | 'gateway';
  readonly address: string;
  readonly port: number;
  /** Whether there is also a listener for clients that cannot send credentials. */
  readonly relay: boolean;
}

/** A credential of a binding or connector that is paused for a session. */
export interface PausedUse {
  readonly binding: string;
  readonly host: string;
}

/**
 * A sandbox that the session's launcher makes without a container engine (decision 0122). Its network is empty: the only way out
 * is the session's own socket.
 */
export const hostSandbox = z.strictObject({
  mode: z.enum(['bubblewrap', 'sandbox-exec']),
  egress: z.enum(EGRESS_MODES),
  /** The name of its folder in `$SVC_HOME/sandboxes`, which the launcher has made; the socket is in it. */
  folder: z.string().regex(SANDBOX_FOLDER_NAME, 'is not the name of a folder of a sandbox'),
});
export type HostSandbox = Readonly<z.output<typeof hostSandbox>>;

/** The requested sandbox of a session. */
export interface Sandbox {
  readonly mode: EngineName;
  /** The requested image name, and its id at that time. */
  readonly image: string;
  readonly imageId: string;
  readonly runtime: EngineAddress;
  /** True if the container outlives the program that launched it. */
  readonly detached: boolean;
  readonly egress: Egress;
}
