/**
 * The CPU time that the control plane takes to store a sidecar's audit events, by the number of events in a call: on the
 * embedded database and on a libSQL server, with Node as the runtime. The calls are those of a sidecar, signed and over
 * HTTP. The sizes alternate in rounds. Prints a table; exits 1 if a full call on the embedded database takes more than
 * 15 us an event. Run with `node bench/event_intake.ts [--rounds N] [--events N]`.
 */
import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { type NodeUnderTest, startLibsqlServer, startOnNode, startOnNodeServer } from '../e2e/runtimes/programs.ts';
import { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import type { AuditEvent } from '../shared/model/audit_event.ts';
import { EVENTS_TYP, eventsPayload } from '../shared/wire/channel.ts';
import { newId } from '../shared/wire/ids.ts';
import { cpuMicroseconds } from './load/process_stats.ts';
import { median } from './sample.ts';
import { figure, table } from './table.ts';

const CALL_SIZES = [5, 50, 500] as const;
const LARGEST = 500;
const EMBEDDED = 'embedded libSQL';
const LIMIT_MICROSECONDS = 15;

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '7' }, events: { type: 'string', default: '20000' } },
});
const rounds = Number(values.rounds);
const eventsPerRound = Number(values.events);

/** A request with a credential: the most frequent event, with what a sidecar fills in. */
function sampleEvent(sidecarId: string, number: number): AuditEvent {
  const now = Date.now();
  return {
    id: newId('evt', randomBytes(16), now),
    type: 'sandbox.proxy.binding_injected',
    time: new Date(now).toISOString(),
    sidecar_id: sidecarId,
    session_id: 'ses_01arz3ndektsv4rrffq69g5fav',
    actor: 'session',
    data: {
      'svc.proxy.source': 'transparent_connect_tls',
      'svc.proxy.mediation': 'binding',
      'svc.proxy.method': 'GET',
      'svc.proxy.upstream.host': `h${number % 20}.bench.test`,
      'svc.proxy.upstream.path': `/items/${number}`,
      'svc.proxy.upstream.status': 200,
      'svc.proxy.bytes.sent': 120,
      'svc.proxy.bytes.received': 640,
      'svc.proxy.binding.host': `h${number % 20}.bench.test`,
      'svc.proxy.binding.scheme': 'bearer',
      'svc.proxy.emit': 'inject',
      'svc.proxy.credential_ref': 'vault://bench/1',
    },
  };
}

interface Measured {
  readonly cpuPerEvent: number;
  readonly millisecondsPerCall: number;
}

/** Sends events in calls of one size, one call at a time. */
async function measureCalls(control: NodeUnderTest, sidecar: TestSidecar, size: number): Promise<Measured> {
  const calls = Math.max(1, Math.round(Math.min(eventsPerRound, size * 100) / size));
  const before = cpuMicroseconds(control.pid);
  const begun = performance.now();
  for (let call = 0; call < calls; call += 1) {
    const events = Array.from({ length: size }, (_, index) => sampleEvent(sidecar.enrolled.sidecar_id, index));
    const reply = await sidecar.call('POST', '/v1/sidecar/events', { body: { events } });
    if (reply.status !== 200) throw new Error(`the events were answered ${reply.status}: ${await reply.text()}`);
    const { accepted } = await sidecar.verify(await reply.text(), EVENTS_TYP, eventsPayload);
    if (accepted.length !== size) throw new Error(`${accepted.length} of ${size} events were accepted`);
  }
  const milliseconds = performance.now() - begun;
  return {
    cpuPerEvent: (cpuMicroseconds(control.pid) - before) / (calls * size),
    millisecondsPerCall: milliseconds / calls,
  };
}

async function measureOn(title: string, control: NodeUnderTest): Promise<string[][]> {
  const sidecar = await TestSidecar.make((path, init) => fetch(control.url + path, init));
  await sidecar.enrol(control.localKey);
  const measured = new Map<number, Measured[]>(CALL_SIZES.map((size) => [size, []]));
  for (let round = 0; round <= rounds; round += 1) {
    for (const size of CALL_SIZES) {
      const result = await measureCalls(control, sidecar, size);
      // The first round only warms up.
      if (round > 0) measured.get(size)?.push(result);
    }
  }
  return [...measured].map(([size, results]) => {
    const cpu = results.map((each) => each.cpuPerEvent);
    if (title === EMBEDDED && size === LARGEST && median(cpu) > LIMIT_MICROSECONDS) process.exitCode = 1;
    const spread = `${figure(Math.min(...cpu))} to ${figure(Math.max(...cpu))}`;
    return [
      title,
      String(size),
      figure(median(cpu)),
      spread,
      figure(median(cpu) * size),
      figure(median(results.map((each) => each.millisecondsPerCall))),
    ];
  });
}

const rows: string[][] = [];
const onFile = await startOnNode();
try {
  rows.push(...(await measureOn(EMBEDDED, onFile)));
} finally {
  await onFile.stop();
}
const server = await startLibsqlServer();
const onServer = await startOnNodeServer({ url: server.url });
try {
  rows.push(...(await measureOn('sqld', onServer)));
} finally {
  await onServer.stop();
  await server.stop();
}
process.stdout.write(
  `${table(['database', 'events in a call', 'CPU per event, us', 'spread', 'CPU per call, us', 'ms per call'], rows)}\n`,
);
