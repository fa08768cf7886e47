import { z } from 'zod';
import { figure, table } from '../table.ts';

/** The part of `node --cpu-prof` output that is read here; times are microseconds of the monotonic clock. */
const cpuProfile = z.object({
  nodes: z.array(
    z.object({
      id: z.number(),
      callFrame: z.object({ functionName: z.string(), url: z.string(), lineNumber: z.number() }),
    }),
  ),
  startTime: z.number(),
  samples: z.array(z.number()),
  timeDeltas: z.array(z.number()),
});
type CpuProfile = z.infer<typeof cpuProfile>;

interface SelfTime {
  readonly name: string;
  readonly place: string;
  readonly microseconds: number;
}

/** From and to, in microseconds of the monotonic clock. */
export type Window = readonly [number, number];

export function parseCpuProfile(json: string): CpuProfile {
  return cpuProfile.parse(JSON.parse(json));
}

export function monotonicMicroseconds(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

const IDLE = '(idle)';
const OWN_PLACE = /(?:sidecar|shared|worker|node_modules)\/.*$/;

/** Self time of each function within the window, largest first; idle time is left out. */
export function selfTimes(profile: CpuProfile, [from, to]: Window): readonly SelfTime[] {
  const frames = new Map(profile.nodes.map((node) => [node.id, node.callFrame]));
  const times = new Map<string, SelfTime>();
  let at = profile.startTime;
  profile.samples.forEach((id, index) => {
    const delta = profile.timeDeltas[index] ?? 0;
    at += delta;
    const frame = frames.get(id);
    if (frame === undefined || frame.functionName === IDLE || at < from || at > to) return;
    const key = `${frame.functionName} ${frame.url}:${frame.lineNumber}`;
    times.set(key, {
      name: frame.functionName === '' ? '(anonymous)' : frame.functionName,
      place: frame.url === '' ? 'native' : (OWN_PLACE.exec(frame.url)?.[0] ?? frame.url),
      microseconds: (times.get(key)?.microseconds ?? 0) + delta,
    });
  });
  return [...times.values()].toSorted((a, b) => b.microseconds - a.microseconds);
}

/** The functions with the largest self time, as a table. */
export function selfTimesTable(times: readonly SelfTime[], rows: number): string {
  const total = times.reduce((sum, one) => sum + one.microseconds, 0);
  const share = (one: SelfTime): string => figure((100 * one.microseconds) / total);
  const lines = times.slice(0, rows).map((one) => [one.name, one.place, share(one)]);
  return table(['function', 'where', 'self %'], lines);
}
