import { readdirSync, readFileSync } from 'node:fs';

/** Memory of a process in MiB: now, and its maximum so far. */
export interface ProcessMemory {
  readonly residentMib: number;
  readonly peakMib: number;
}

export function memoryOf(pid: number): ProcessMemory {
  const status = tryRead(`/proc/${pid}/status`);
  const mib = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) / 1024;
  return { residentMib: mib('VmRSS'), peakMib: mib('VmHWM') };
}

/** The processor time that the threads of a process have had so far. Unlike the time on a clock, it does not count what others do. */
export function processorMs(pid: number): number {
  const folder = `/proc/${pid}/task`;
  const threads = tryList(folder).map((thread) => Number(tryRead(`${folder}/${thread}/schedstat`).split(' ')[0]));
  return threads.reduce((sum, nanoseconds) => sum + (Number.isFinite(nanoseconds) ? nanoseconds : 0), 0) / 1e6;
}

function tryList(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function tryRead(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
