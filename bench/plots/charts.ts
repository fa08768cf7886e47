import { CASES, type CaseId } from '../cases.ts';
import { medianOf, type Sample, SUBJECTS } from '../sample.ts';
import { type Bar, barChart, type Group } from './bar_chart.ts';

type Measure = Parameters<typeof medianOf>[3];

function group(samples: readonly Sample[], caseId: CaseId, title: string, measure: Measure): Group {
  const bars = SUBJECTS.flatMap((subject): Bar[] => {
    const value = medianOf(samples, caseId, subject, measure);
    return value === null ? [] : [{ label: subject, value, own: subject === 'svc' }];
  });
  return { title, bars };
}

const MICROSECONDS = { us: 1, ms: 1000 } as const;

interface CpuChart {
  readonly title: string;
  readonly ids: readonly CaseId[];
  readonly unit: keyof typeof MICROSECONDS;
}

function cpuChart(samples: readonly Sample[], { title, ids, unit }: CpuChart): string {
  const scaled = samples.map((one) => ({
    ...one,
    cpuMicroseconds: one.cpuMicroseconds === null ? null : one.cpuMicroseconds / MICROSECONDS[unit],
  }));
  const chosen = CASES.filter(({ id }) => ids.includes(id));
  const groups = chosen.map((one) => group(scaled, one.id, one.title, 'cpuMicroseconds'));
  return barChart({ title, note: 'CPU time of the proxy for each unit; shorter is better', unit, groups });
}

/** The charts of a run, by file name. */
export function charts(samples: readonly Sample[]): Readonly<Record<string, string>> {
  const latency = {
    title: 'Latency of a small request on one kept connection',
    note: 'through the same client and upstream; shorter is better',
    unit: 'ms',
    groups: [
      group(samples, 'keepalive_1', 'median (p50)', 'p50Ms'),
      group(samples, 'keepalive_1', '99th percentile (p99)', 'p99Ms'),
    ],
  };
  const memory = {
    title: 'Memory',
    note: 'resident after each load; shorter is better',
    unit: 'MiB',
    groups: [
      group(samples, 'keepalive_32', 'after small requests on 32 connections', 'residentMib'),
      group(samples, 'upload', 'after 256 MiB each way', 'residentMib'),
    ],
  };
  return {
    'bench_cpu_requests.svg': cpuChart(samples, {
      title: 'CPU per request',
      ids: ['keepalive_1', 'keepalive_32', 'reply_64k'],
      unit: 'us',
    }),
    'bench_cpu_tunnels.svg': cpuChart(samples, {
      title: 'CPU per tunnel and per transfer',
      ids: ['new_tunnel', 'download', 'upload'],
      unit: 'ms',
    }),
    'bench_latency.svg': barChart(latency),
    'bench_memory.svg': barChart(memory),
  };
}
