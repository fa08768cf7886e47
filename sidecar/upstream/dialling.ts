import type { Connection } from '../../machine/connection/connection.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';

/** A pending connection. */
export interface Dialling<Connected = Connection> {
  /** Refuses with `upstream_unreachable`, `upstream_proxy_failed`, `upstream_tls_failed` or `egress_address_not_allowed`. */
  readonly connected: Promise<Result<Connected, Refusal>>;
  /** Stops dialling. */
  readonly cancel: () => void;
}
