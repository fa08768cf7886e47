import { z } from 'zod';
import { CASE_IDS } from './cases.ts';
import { PROXY_NAMES } from './peers/proxy.ts';

export const SUBJECTS = ['direct', ...PROXY_NAMES] as const;
export type Subject = (typeof SUBJECTS)[number];

/** One run of one case through one proxy, or directly to the upstream. */
const sample = z.object({
  round: z.number(),
  caseId: z.enum(CASE_IDS),
  subject: z.enum(SUBJECTS),
  units: z.number(),
  seconds: z.number(),
  /** CPU of the proxy's processes per unit; null for `direct`. */
  cpuMicroseconds: z.number().nullable(),
  /** CPU per unit of the process that works for the proxy in the background. */
  companionMicroseconds: z.number().nullable(),
  /** Of one request, from its first byte to the last byte of its reply; null if not meaningful. */
  p50Ms: z.number().nullable(),
  p99Ms: z.number().nullable(),
  residentMib: z.number().nullable(),
  /** The maximum rise of memory above its earlier level; transfers only. */
  extraMib: z.number().nullable(),
  /** Connections that did not end normally. */
  failed: z.number(),
});
export type Sample = z.infer<typeof sample>;

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const upper = sorted[Math.floor(middle)] ?? Number.NaN;
  const lower = sorted[Math.ceil(middle) - 1] ?? Number.NaN;
  return (upper + lower) / 2;
}

type Measure = 'cpuMicroseconds' | 'companionMicroseconds' | 'p50Ms' | 'p99Ms' | 'residentMib' | 'extraMib';

export function samplesOf(samples: readonly Sample[], caseId: Sample['caseId'], subject: Subject): readonly Sample[] {
  return samples.filter((one) => one.caseId === caseId && one.subject === subject);
}

/** The median over the rounds, or null if not measured. */
export function medianOf(
  samples: readonly Sample[],
  caseId: Sample['caseId'],
  subject: Subject,
  measure: Measure,
): number | null {
  const found = samplesOf(samples, caseId, subject).map((one) => one[measure]);
  const values = found.filter((value) => value !== null);
  return values.length === 0 ? null : median(values);
}

/** The median of the ratios of each round: a disturbance of the machine affects both sides of a round alike. */
export function ratioOf(
  samples: readonly Sample[],
  caseId: Sample['caseId'],
  [subject, other]: readonly [Subject, Subject],
  measure: Measure,
): number | null {
  const others = new Map(samplesOf(samples, caseId, other).map((one) => [one.round, one[measure]]));
  const ratios = samplesOf(samples, caseId, subject).flatMap((one) => {
    const value = one[measure];
    const compared = others.get(one.round);
    return value === null || compared === null || compared === undefined ? [] : [value / compared];
  });
  return ratios.length === 0 ? null : median(ratios);
}
