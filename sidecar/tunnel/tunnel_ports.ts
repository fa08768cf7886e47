import type { ConnectionGate } from '../../shared/net/connection_gate.ts';
import type { ExchangePorts } from '../exchange/exchange_ports.ts';
import type { Log, Metrics } from '../../machine/ports.ts';
import type { AgreedUpstream, AuditSink, SessionDirectory, UpstreamLanes, WantedUpstream } from '../ports.ts';
import type { Dialling } from '../upstream/dialling.ts';
import type { SessionRefusals } from './session_refusals.ts';
import type { StrangerRefusals } from './stranger_refusals.ts';

/** The dependencies of all tunnels. */
export interface TunnelPorts {
  readonly sessions: SessionDirectory;
  /** Admits connections. */
  readonly gate: ConnectionGate;
  readonly exchange: ExchangePorts;
  readonly audit: AuditSink;
  /** Records refusals of clients without a session. */
  readonly strangers: StrangerRefusals;
  /** Records what sessions do before a request: refused CONNECTs, failed TLS handshakes. */
  readonly refusals: SessionRefusals;
  readonly metrics: Metrics;
  readonly log: Log;
  /** The upstream connections of a new tunnel, and the version that it speaks. */
  openUpstream(wanted: WantedUpstream): Promise<AgreedUpstream>;
  /** Connects to a host for a client that does its own TLS handshake with it. */
  dialTcp(host: string, publicOnly: boolean): Dialling;
  /** Upstream connections to a host over HTTP/1.1, for a run; `close` drops them. `isPublicOnly` is called before each dial. */
  openLanes(host: string, isPublicOnly: () => boolean): UpstreamLanes & { close(): void };
  /** The same to the host's port 80, without TLS. */
  openPlainLanes(host: string, isPublicOnly: () => boolean): UpstreamLanes & { close(): void };
}
