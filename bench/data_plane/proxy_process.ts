/** The proxy process of `bench/data_plane.ts`: the whole data plane with 1,000 bindings and an audit spool on disk. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { DEFAULT_LIMITS } from '../../shared/model/limits.ts';
import { ok } from '../../shared/model/result.ts';
import { listen } from '../../machine/connection/listen.ts';
import { createSocketGate } from '../../machine/connection/socket_gate.ts';
import { AuditSpool } from '../../sidecar/spool/audit_spool.ts';
import { Link } from '../../sidecar/control/link.ts';
import { BodyBudget } from '../../sidecar/exchange/body.ts';
import { MaskedReplies } from '../../sidecar/exchange/masked_replies.ts';
import { RequestCounts } from '../../sidecar/exchange/request_counts.ts';
import { MaterialCache } from '../../sidecar/exchange/material.ts';
import { NodeSha256 } from '../../sidecar/exchange/node_sha256.ts';
import { MetricsRegistry } from '../../sidecar/local_api/metrics.ts';
import type { Log } from '../../machine/ports.ts';
import { Sessions } from '../../sidecar/session/sessions.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { FakeApprovalSource, FakeCredentialSource, FakePolicySource } from '../../sidecar/testing/fakes.ts';
import { createSessionCa } from '../../sidecar/tls/session_ca.ts';
import { createListener } from '../../sidecar/tunnel/listener.ts';
import { SessionRefusals } from '../../sidecar/tunnel/session_refusals.ts';
import { StrangerRefusals } from '../../sidecar/tunnel/stranger_refusals.ts';
import { createDialer } from '../../sidecar/upstream/dialer.ts';
import { TunnelLanes } from '../../sidecar/upstream/lanes.ts';
import { openUpstream } from '../../sidecar/upstream/open_upstream.ts';
import { WarmUpstreams } from '../../sidecar/upstream/warm_upstreams.ts';

const BINDINGS = 1000;
const [host = '', upstreamPort = '', upstreamCa = ''] = process.argv.slice(2);
const home = mkdtempSync(join(tmpdir(), 'svc-bench-'));
const clock = { now: () => Date.now() };
const metrics = new MetricsRegistry({});

const bindings = Array.from({ length: BINDINGS - 1 }, (_, index) => bearerBinding(`*.s${index}.example.test`));
const policy = new FakePolicySource([...bindings, bearerBinding(`bound.${host}`, { body: 'stream' })]);
const credentials = new FakeCredentialSource();
credentials.set({ owner: 'personal', path: 'user/demo' }, 'ghp_16C7e42F292c6912E7710c838347Ae178B4a');

const audit = new AuditSpool({
  directory: join(home, 'spool'),
  sidecarId: 'sdc_bench',
  maxSpoolBytes: DEFAULT_LIMITS.maxSpoolBytes,
  channel: { sendEvents: (events) => Promise.resolve(ok({ accepted: events.map(idOf), rejected: [] })) },
  link: new Link(),
  clock,
  metrics,
  warn: (message) => process.stderr.write(`${message}\n`),
});
audit.start();

function idOf(event: string): string {
  return event.slice('{"id":"'.length, event.indexOf('"', '{"id":"'.length));
}

const sessions = new Sessions({
  directory: join(home, 'sessions'),
  clock,
  maxTunnelsPerSession: 100_000,
  createCa: (directory, sessionId) =>
    createSessionCa(directory, { sessionId, maxLeaves: 1000, now: () => clock.now() }),
  systemRoots: () => '',
});

const pinned = { address: '127.0.0.1', port: Number(upstreamPort) };
const dialer = createDialer({
  roots: [Buffer.from(upstreamCa, 'base64').toString()],
  pinned: new Map([host, `bound.${host}`].map((name) => [name, pinned])),
  denyPrivate: false,
  timeoutSeconds: 5,
  limits: DEFAULT_LIMITS,
});

const warm = new WarmUpstreams(DEFAULT_LIMITS.keepUpstreamSeconds);
const log: Log = { info: () => undefined, error: (message) => void process.stderr.write(`${message}\n`) };
const { session, token } = await sessions.create({ name: null, ttlSeconds: 3600 });
const listener = createListener(
  {
    sessions,
    gate: createSocketGate({ limits: DEFAULT_LIMITS, maxOpen: null, metrics, log, clock }),
    exchange: {
      policy,
      credentials,
      approvals: new FakeApprovalSource(),
      audit,
      clock,
      limits: DEFAULT_LIMITS,
      budget: new BodyBudget(DEFAULT_LIMITS.maxBufferedBodiesBytes),
      materials: new MaterialCache(),
      masked: new MaskedReplies(1000, () => true),
      counts: new RequestCounts({ clock }),
      hash: NodeSha256,
    },
    audit,
    strangers: new StrangerRefusals(audit),
    refusals: new SessionRefusals(audit),
    metrics,
    log,
    openUpstream: (wanted) => openUpstream(dialer, warm, wanted),
    dialTcp: () => {
      throw new Error('the bench carries nothing unread');
    },
    openLanes: (name, isPublicOnly) => new TunnelLanes({ dialer, host: name, isPublicOnly }),
    openPlainLanes: () => {
      throw new Error('the bench sends nothing over plain HTTP');
    },
  },
  createServer(),
);

const port = await listen(listener, 0, '127.0.0.1');
process.on('message', () => {
  credentials.asked.length = 0;
  process.send?.({ cpu: process.cpuUsage(), rss: process.memoryUsage.rss() });
});
process.on('disconnect', () => {
  rmSync(home, { recursive: true, force: true });
  process.exit(0);
});
process.send?.({ port, sessionId: session.id, token, caPem: session.ca.caPem });
