import type { RunRefusalReason } from '../../shared/audit/exchange_event.ts';
import type { ProxySource } from '../../shared/model/audit_event.ts';
import type { ExchangePorts } from '../exchange/exchange_ports.ts';
import type { Metrics } from '../../machine/ports.ts';
import type { AuditSink, UpstreamLanes } from '../ports.ts';

/** What operations are run with: the data plane's own. */
export interface RunPorts {
  readonly exchange: ExchangePorts;
  readonly audit: AuditSink;
  readonly metrics: Metrics;
  /** New upstream connections to a host; `close` drops them. */
  openLanes(host: string, isPublicOnly: () => boolean): UpstreamLanes & { close(): void };
}

/** Who runs an operation, and through which entrance. */
export interface RunCaller {
  readonly source: Exclude<ProxySource, 'transparent_connect_tls'>;
  /** Null for the host itself. */
  readonly sessionId: string | null;
  /** Aborted when the caller, or its session, is gone. */
  readonly gone: AbortSignal;
}

/** Why an operation was not run, or gave no reply. */
export interface RunRefusal {
  readonly reason: RunRefusalReason;
  /** The problem and the fix; never a secret, a query or a value of an argument. */
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}
