import type { CaseId } from './cases.ts';
import { medianOf, ratioOf, type Sample, type Subject } from './sample.ts';

/** What "fast" means for the whole product: design section 12. */

export interface Verdict {
  readonly what: string;
  readonly unit: '' | 'ms' | 'MiB';
  /** Null: not measured in this run. */
  readonly measured: number | null;
  readonly limit: number;
}

export interface StartFigures {
  readonly idleResidentMib: number;
  /** The slowest of a hundred API calls took so long. */
  readonly apiP99Ms: number;
}

type CpuTarget = readonly [CaseId, Subject, number];

const CPU_TARGETS: readonly CpuTarget[] = [
  ['keepalive_1', 'squid', 0.7],
  ['keepalive_32', 'squid', 0.7],
  ['keepalive_1', 'sandbox-runtime', 0.35],
  ['keepalive_32', 'sandbox-runtime', 0.35],
  ['new_tunnel', 'squid', 1],
  ['reply_64k', 'squid', 0.6],
  ['download', 'squid', 0.7],
  ['upload', 'squid', 0.7],
  ['streams_100', 'nghttpx', 1.5],
];

const LATENCY_RATIO_TO_SQUID = 0.7;
const ADDED_P50_MS = 0.3;
const EXTRA_MIB = 64;
const IDLE_MIB = 150;
const API_P99_MS = 20;

function addedMs(samples: readonly Sample[]): number | null {
  const through = medianOf(samples, 'keepalive_1', 'svc', 'p50Ms');
  const direct = medianOf(samples, 'keepalive_1', 'direct', 'p50Ms');
  return through === null || direct === null ? null : through - direct;
}

/** Every target with what this run measured for it. */
export function verdicts(samples: readonly Sample[], start: StartFigures): readonly Verdict[] {
  const cpu = CPU_TARGETS.map(([id, other, limit]): Verdict => {
    const measured = ratioOf(samples, id, ['svc', other], 'cpuMicroseconds');
    return { what: `${id}: CPU against ${other}`, unit: '', measured, limit };
  });
  const extra = (['download', 'upload'] as const).map((id): Verdict => {
    const measured = medianOf(samples, id, 'svc', 'extraMib');
    return { what: `${id}: extra memory`, unit: 'MiB', measured, limit: EXTRA_MIB };
  });
  const latency = ratioOf(samples, 'keepalive_1', ['svc', 'squid'], 'p50Ms');
  return [
    ...cpu,
    { what: 'keepalive_1: p50 against squid', unit: '', measured: latency, limit: LATENCY_RATIO_TO_SQUID },
    { what: 'keepalive_1: p50 above direct', unit: 'ms', measured: addedMs(samples), limit: ADDED_P50_MS },
    ...extra,
    { what: 'sidecar, idle: memory', unit: 'MiB', measured: start.idleResidentMib, limit: IDLE_MIB },
    { what: 'control API, one write: p99', unit: 'ms', measured: start.apiP99Ms, limit: API_P99_MS },
  ];
}
