/** A credential that the container gets as it is, because no binding can complete its requests (specification section 2). */
export interface UnsealedCredential {
  /** The environment variable that holds it. */
  readonly env: string;
  /** `vault://...` */
  readonly reference: string;
  readonly host: string;
  /** Why it could not be sealed. */
  readonly reason: string;
}

/** The container engine of a session: its program, and the local socket it listens on. */
export interface EngineAddress {
  readonly program: 'docker';
  /** `unix:///...` */
  readonly endpoint: string;
}

/** The sandbox of a launched session, as it was asked for. */
export interface Sandbox {
  readonly mode: 'docker';
  /** As it was asked for, and the id it had then. */
  readonly image: string;
  readonly imageId: string;
  readonly runtime: EngineAddress;
  /** True when the container goes on without the program that launched it. */
  readonly detached: boolean;
  readonly egress: 'open' | 'sealed';
}
