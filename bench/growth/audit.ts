import { randomBytes } from 'node:crypto';
import { type InProcess, parseReply, startInProcess } from '../../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../../e2e/runtimes/sidecar_client.ts';
import type { AuditEvent } from '../../shared/model/audit_event.ts';
import { auditEventsPage, auditPruneReply, auditVerification } from '../../shared/wire/audit_events.ts';
import { newId } from '../../shared/wire/ids.ts';
import { median } from '../sample.ts';
import type { Bound, Cost, Grown, Step } from './growth.ts';

const FIRST = 1_000;
const EVENTS_PER_CALL = 500;
const TIMES = 7;
const DAY_MS = 86_400_000;
/** The events of one agent. */
const EVENTS_PER_SESSION = 1_000;
const HOSTS = 20;
const RARE_EVERY = 5_000;

/** What people ask of the log, and what each question may cost in its size. */
const QUESTIONS: readonly { readonly name: string; readonly bound: Bound; readonly query: string }[] = [
  { name: 'the newest 50', bound: 'constant', query: '' },
  { name: 'the newest 50 of a host', bound: 'constant', query: '&host=h3.bench.test' },
  { name: 'the newest 50 of a session', bound: 'constant', query: `&session=${sessionOf(0)}` },
  { name: 'rare replies (502) of a week', bound: 'n', query: '&status=502' },
];

function sessionOf(number: number): string {
  return `ses_${String(Math.floor(number / EVENTS_PER_SESSION)).padStart(26, '0')}`;
}

function eventAt(sidecarId: string, number: number, ms: number): AuditEvent {
  const host = `h${number % HOSTS}.bench.test`;
  return {
    id: newId('evt', randomBytes(16), ms),
    type: 'sandbox.proxy.binding_injected',
    time: new Date(ms).toISOString(),
    sidecar_id: sidecarId,
    session_id: sessionOf(number),
    actor: 'session',
    data: {
      'svc.proxy.source': 'transparent_connect_tls',
      'svc.proxy.mediation': 'binding',
      'svc.proxy.method': 'GET',
      'svc.proxy.upstream.host': host,
      'svc.proxy.upstream.path': `/items/${number}`,
      'svc.proxy.upstream.status': number % RARE_EVERY === 0 ? 502 : 200,
      'svc.proxy.bytes.sent': 120,
      'svc.proxy.bytes.received': 640,
      'svc.proxy.binding.host': host,
      'svc.proxy.binding.scheme': 'bearer',
      'svc.proxy.emit': 'inject',
      'svc.proxy.credential_ref': 'vault://bench/1',
    },
  };
}

/** The control plane's log on its own database, in this process, from a thousand events on. Its clock is the bench's. */
export async function growAudit(most: number): Promise<Grown> {
  const control = await startInProcess();
  try {
    return await measure(control, most);
  } finally {
    await control.stop();
  }
}

async function measure(control: InProcess, most: number): Promise<Grown> {
  const sidecar = await control.enrolSidecar();
  const steps: Record<string, Step[]> = {};
  const note = (name: string, size: number, cost: number) => (steps[name] ??= []).push({ size, cost });
  let stored = 0;
  for (let size = FIRST; size <= most; size *= 10) {
    const added = size - stored;
    let firstTenth = 0;
    const filling = await cpuOf(async () => {
      for (; stored < size; stored += EVENTS_PER_CALL) {
        await store(control, sidecar, stored);
        control.clock.ms += 1_000;
        if (firstTenth === 0 && stored >= size - 0.9 * added) firstTenth = control.clock.ms;
      }
    });
    note('storing an event', size, (filling * 1_000) / added);
    for (const { name, query } of QUESTIONS) {
      note(name, size, await medianCpu(async () => parseReply(auditEventsPage, ask(control, `limit=50${query}`))));
    }
    note('verifying all chains', size, await cpuOf(() => verify(control)));
    note('memory', size, process.memoryUsage().rss / 1024 ** 2);
    control.clock.ms += 2 * DAY_MS;
    note('removing an event', size, await measureRemoval(control, firstTenth));
  }
  const cost = (name: string, bound: Bound, unit = 'ms'): Cost => ({ name, unit, bound, steps: steps[name] ?? [] });
  return {
    title: 'Audit log',
    amount: 'events',
    costs: [
      cost('storing an event', 'log n', 'us'),
      ...QUESTIONS.map(({ name, bound }) => cost(name, bound)),
      cost('verifying all chains', 'n'),
      cost('removing an event', 'log n', 'us'),
      cost('memory', 'log n', 'MiB'),
    ],
  };
}

async function store(control: InProcess, sidecar: TestSidecar, from: number): Promise<void> {
  const events = Array.from({ length: EVENTS_PER_CALL }, (_, index) =>
    eventAt(sidecar.enrolled.sidecar_id, from + index, control.clock.ms),
  );
  const reply = await sidecar.call('POST', '/v1/sidecar/events', { body: { events } });
  const text = await reply.text();
  if (!reply.ok) throw new Error(`the events were answered ${reply.status}: ${text}`);
}

function ask(control: InProcess, query: string): Promise<Response> {
  return control.asUser('GET', `/v1/audit-events?${query}`);
}

async function verify(control: InProcess): Promise<void> {
  const { ok, first_break: broken } = await parseReply(
    auditVerification,
    control.asUser('GET', '/v1/audit-events/verify'),
  );
  if (!ok) throw new Error(`the log is broken: ${JSON.stringify(broken)}`);
}

/** Microseconds for each event that arrived before a time. */
async function measureRemoval(control: InProcess, before: number): Promise<number> {
  let count = 0;
  const milliseconds = await cpuOf(async () => {
    for (let isFinished = false; !isFinished;) {
      const input = { before: new Date(before).toISOString() };
      const reply = control.asUser('POST', '/v1/audit-events/prune', input);
      const { finished, removed } = await parseReply(auditPruneReply, reply);
      count += removed;
      isFinished = finished;
    }
  });
  return (milliseconds * 1_000) / count;
}

/** Milliseconds of CPU. */
async function cpuOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

async function medianCpu(work: () => Promise<unknown>): Promise<number> {
  const taken: number[] = [];
  for (let time = 0; time < TIMES; time += 1) taken.push(await cpuOf(work));
  return median(taken);
}
