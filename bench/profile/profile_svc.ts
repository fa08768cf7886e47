import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CASES, type CaseId } from '../cases.ts';
import type { CleanUp } from '../clean_up.ts';
import { startNginx } from '../load/nginx.ts';
import { measure, subjectOf } from '../measure.ts';
import { startSvc } from '../peers/svc.ts';
import { monotonicMicroseconds, parseCpuProfile, selfTimes, selfTimesTable, type Window } from './cpu_profile.ts';

const ROWS = 20;
const WARM_UP_SECONDS = 2;

/** Where `--cpu-prof` wrote the profile of an ended process. */
function profileOf(folder: string, pid: number): string {
  const name = readdirSync(folder).find((file) => file.split('.')[3] === String(pid));
  if (name === undefined) throw new Error(`the sidecar (process ${pid}) left no profile`);
  return readFileSync(join(folder, name), 'utf8');
}

/** Runs svc alone, with Node's profiler, through every load, and reports where the sidecar's main thread spent its time. */
export async function profileSvc(
  directory: string,
  { seconds, cases }: { readonly seconds: number; readonly cases: readonly CaseId[] },
  cleanUp: CleanUp,
): Promise<string> {
  const folder = join(directory, 'profiles');
  const upstream = cleanUp.add(await startNginx(directory));
  const svc = cleanUp.add(
    await startSvc({ directory, upstream, nodeFlags: ['--cpu-prof', `--cpu-prof-dir=${folder}`] }),
  );
  const subject = await subjectOf(svc, upstream, cleanUp);
  const windows: { title: string; window: Window; cpu: number }[] = [];
  for (const one of CASES.filter(({ kind, id }) => kind !== 'transfer' && (cases.length === 0 || cases.includes(id)))) {
    await measure(one, subject, upstream, WARM_UP_SECONDS);
    const from = monotonicMicroseconds();
    const found = await measure(one, subject, upstream, seconds);
    windows.push({ title: one.title, window: [from, monotonicMicroseconds()], cpu: found?.cpuMicroseconds ?? 0 });
  }
  await svc.stop();
  const profile = parseCpuProfile(profileOf(folder, svc.pid));
  return windows
    .map(
      ({ title, window, cpu }) =>
        `${title} (${cpu.toFixed(0)} us of CPU each)\n\n${selfTimesTable(selfTimes(profile, window), ROWS)}\n`,
    )
    .join('\n');
}
