import { readdirSync, readFileSync } from 'node:fs';

/** Memory of a process in MiB: now, and its maximum so far. */
export interface ProcessMemory {
  readonly residentMib: number;
  readonly peakMib: number;
}

interface ProcessFacts {
  readonly pid: number;
  readonly name: string;
  readonly group: number;
}

/** The running processes; one that ends in the meantime is left out. */
function processes(): ProcessFacts[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((entry) => {
      const stat = tryRead(`/proc/${entry}/stat`);
      const parts = /^(\d+) \((.*)\) \S \d+ (\d+)/.exec(stat);
      return parts === null ? [] : [{ pid: Number(parts[1]), name: parts[2] ?? '', group: Number(parts[3]) }];
    });
}

/** The processes of this name in the process group of the one whose command line contains these words. */
export function processesBeside(words: readonly string[], name: string): number[] {
  const all = processes();
  const leaders = all.filter(({ pid }) => {
    const line = tryRead(`/proc/${pid}/cmdline`).split('\0');
    return words.every((word) => line.includes(word));
  });
  const groups = new Set(leaders.map(({ group }) => group));
  return all.filter((each) => groups.has(each.group) && each.name === name).map(({ pid }) => pid);
}

export function memoryOf(pid: number): ProcessMemory {
  const status = tryRead(`/proc/${pid}/status`);
  const mib = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) / 1024;
  return { residentMib: mib('VmRSS'), peakMib: mib('VmHWM') };
}

function tryRead(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
