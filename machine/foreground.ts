import { readFileSync } from 'node:fs';

/**
 * False if this process is a background job of its terminal, such as `svc up &`: the kernel would suspend it if it read from the
 * terminal (SIGTTIN). True without a terminal of its own, and without Linux's /proc, where this is not known.
 */
export function isInForeground(readStat: () => string = readOwnStat): boolean {
  // proc_pid_stat(5): the command in field 2 may hold spaces and parentheses.
  const stat = readStat();
  const [, , group, , terminal = '0', foregroundGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return terminal === '0' || group === foregroundGroup;
}

function readOwnStat(): string {
  try {
    return readFileSync('/proc/self/stat', 'latin1');
  } catch {
    return '';
  }
}
