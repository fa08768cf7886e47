import { median } from './sample.ts';

/** The sidecar, looked at while it is under load. */
export interface Look {
  readonly seconds: number;
  readonly residentMib: number;
  readonly sockets: number;
}

interface SoakVerdict {
  readonly afterWarmUpMib: number;
  readonly atEndMib: number;
  /** How far memory grew, as a share of where it stood. */
  readonly growth: number;
  readonly leftSockets: number;
  readonly ok: boolean;
}

const MAX_GROWTH = 0.1;
/** Shares of the whole time: memory is taken after the warm-up, and over the last part. Medians, because it breathes with the garbage collector. */
const WARM_UP = [0.2, 0.3] as const;
const END = [0.9, 1] as const;

function medianWithin(looks: readonly Look[], [from, to]: readonly [number, number]): number {
  const end = looks.at(-1)?.seconds ?? 0;
  const within = looks.filter(({ seconds }) => seconds >= from * end && seconds <= to * end);
  return median(within.map(({ residentMib }) => residentMib));
}

export function soakVerdict(looks: readonly Look[], leftSockets: number): SoakVerdict {
  const afterWarmUpMib = medianWithin(looks, WARM_UP);
  const atEndMib = medianWithin(looks, END);
  const growth = atEndMib / afterWarmUpMib - 1;
  return { afterWarmUpMib, atEndMib, growth, leftSockets, ok: growth <= MAX_GROWTH && leftSockets === 0 };
}
