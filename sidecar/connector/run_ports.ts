import type { RunRefusalReason } from '../../shared/audit/exchange_event.ts';
import type { AccountChoice } from '../../shared/model/account_choice.ts';
import type { ProxySource } from '../../shared/model/audit_event.ts';
import type { ExchangePorts } from '../exchange/exchange_ports.ts';
import type { Metrics } from '../../machine/ports.ts';
import type { AuditSink, UpstreamLanes } from '../ports.ts';

/** The data plane's ports that operations run with. */
export interface RunPorts {
  readonly exchange: ExchangePorts;
  readonly audit: AuditSink;
  readonly metrics: Metrics;
  /** Opens new upstream connections to a host; `close` drops them. */
  openLanes(host: string, isPublicOnly: () => boolean): UpstreamLanes & { close(): void };
}

/** The caller that runs an operation, and the endpoint it uses. */
export interface RunCaller {
  readonly source: Exclude<ProxySource, 'transparent_connect_tls' | 'transparent_plain_http'>;
  /** Null for the host token. */
  readonly sessionId: string | null;
  /** Which account its session uses where a host has several; null: any. */
  readonly choice: AccountChoice | null;
  /** Aborted when the caller disconnects or its session ends. */
  readonly signal: AbortSignal;
}

/** Why an operation was not run, or got no reply. */
export interface RunRefusal {
  readonly reason: RunRefusalReason;
  /** The problem and the fix. Never contains a secret, a query or the value of an argument. */
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}
