import { cpus, release, totalmem } from 'node:os';
import { CASES } from './cases.ts';
import type { Proxy } from './peers/proxy.ts';
import { medianOf, ratioOf, type Sample, samplesOf, type Subject, SUBJECTS } from './sample.ts';
import { figure, table } from './table.ts';
import type { Verdict } from './targets.ts';

const GIB = 1024 ** 3;

export interface Machine {
  readonly cores: number;
  readonly processor: string;
  readonly memoryGib: number;
  readonly kernel: string;
  readonly node: string;
}

export function machine(): Machine {
  const processors = cpus();
  return {
    cores: processors.length,
    processor: processors[0]?.model.trim() ?? 'unknown',
    memoryGib: Math.round(totalmem() / GIB),
    kernel: release(),
    node: process.version,
  };
}

export function machineLine(of: Machine): string {
  return `${of.cores} cores of ${of.processor}, ${of.memoryGib} GiB, Linux ${of.kernel}, Node ${of.node}`;
}

const MICROSECONDS_PER_MS = 1000;

/** In microseconds, or in milliseconds for large values. */
function time(microseconds: number | null): string {
  if (microseconds === null) return figure(null);
  if (microseconds < 10 * MICROSECONDS_PER_MS) return `${microseconds.toFixed(0)} us`;
  return `${(microseconds / MICROSECONDS_PER_MS).toFixed(0)} ms`;
}

function row(samples: readonly Sample[], id: Sample['caseId'], title: string, subject: Subject): readonly string[] {
  const own = samplesOf(samples, id, subject);
  const rates = own.map((one) => one.units / one.seconds).toSorted((a, b) => a - b);
  const of = (measure: Parameters<typeof medianOf>[3]): string => figure(medianOf(samples, id, subject, measure));
  const ratio = (other: Subject): string =>
    subject === 'svc' ? figure(ratioOf(samples, id, ['svc', other], 'cpuMicroseconds')) : '';
  return [
    title,
    subject,
    time(medianOf(samples, id, subject, 'cpuMicroseconds')),
    time(medianOf(samples, id, subject, 'companionMicroseconds')),
    ratio('squid'),
    ratio('sandbox-runtime'),
    ratio('nghttpx'),
    ratio('node:http2'),
    of('p50Ms'),
    of('p99Ms'),
    figure(rates[Math.floor(rates.length / 2)] ?? null),
    of('residentMib'),
    of('extraMib'),
    String(own.reduce((sum, one) => sum + one.failed, 0)),
  ];
}

const COLUMNS = [
  'case',
  'through',
  'CPU per unit',
  'worker beside',
  'x squid',
  'x s-runtime',
  'x nghttpx',
  'x node:http2',
  'p50 ms',
  'p99 ms',
  'units/s',
  'RSS MiB',
  'extra MiB',
  'broken off',
];

/** Medians over the rounds, a row for each case and each way. */
export function resultsTable(samples: readonly Sample[]): string {
  const rows = CASES.flatMap((one) =>
    SUBJECTS.filter((subject) => samplesOf(samples, one.id, subject).length > 0).map((subject, index) =>
      row(samples, one.id, index === 0 ? one.title : '', subject),
    ),
  );
  return table(COLUMNS, rows);
}

function verdictWord({ measured, limit }: Verdict): string {
  if (measured === null) return 'not measured';
  return measured <= limit ? 'met' : 'MISSED';
}

function withUnit(value: number | null, unit: string): string {
  return value === null ? '-' : `${figure(value)} ${unit}`.trim();
}

/** The targets and the measured values; `source` is where the targets are documented. */
export function verdictsTable(verdicts: readonly Verdict[], source = 'design section 12'): string {
  const rows = verdicts.map((one) => [
    one.what,
    withUnit(one.measured, one.unit),
    withUnit(one.limit, one.unit),
    verdictWord(one),
  ]);
  return table([`target (${source})`, 'measured', 'at most', ''], rows);
}

export function proxiesLine(proxies: readonly Proxy[]): string {
  return proxies.map((proxy) => `${proxy.name} ${proxy.version}`).join(', ');
}
