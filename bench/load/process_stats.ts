import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';

/** Process information from Linux's /proc. */

const MICROSECONDS_PER_TICK = 10_000;
const KIB_PER_MIB = 1024;

interface Stat {
  readonly pid: number;
  readonly parent: number;
  /** User and system time, of the process and of its children that have ended and been waited for. */
  readonly ticks: number;
}

/** Fields of proc(5) `stat`, counted after the command's closing parenthesis. */
const PARENT = 1;
const TIMES = [11, 12, 13, 14];

function statOf(pid: number): Stat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const ticks = TIMES.reduce((sum, index) => sum + Number(fields[index]), 0);
    return { pid, parent: Number(fields[PARENT]), ticks };
  } catch {
    return null;
  }
}

/** The process and all its running descendants. */
export function processTree(root: number): readonly number[] {
  const running = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const stats = running.map((name) => statOf(Number(name))).filter((stat) => stat !== null);
  const tree = [root];
  for (const pid of tree) {
    for (const stat of stats) if (stat.parent === pid) tree.push(stat.pid);
  }
  return tree;
}

/** CPU time used so far by the process and all its descendants. */
export function cpuMicroseconds(root: number): number {
  const ticks = processTree(root).reduce((sum, pid) => sum + (statOf(pid)?.ticks ?? 0), 0);
  return ticks * MICROSECONDS_PER_TICK;
}

function statusMib(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  try {
    const kib = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
    return Number(kib ?? 0) / KIB_PER_MIB;
  } catch {
    return 0;
  }
}

/** Resident memory of the process and all its descendants. */
export function residentMib(root: number): number {
  return processTree(root).reduce((sum, pid) => sum + statusMib(pid, 'VmRSS'), 0);
}

/** The process's own maximum resident memory since `forgetPeak`. */
export function peakResidentMib(pid: number): number {
  return statusMib(pid, 'VmHWM');
}

/** Resets the kernel's count of a process's peak memory (proc(5), clear_refs). */
export function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

function socketInodes(pid: number): ReadonlySet<string> {
  const inodes = new Set<string>();
  for (const descriptor of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${descriptor}`))?.[1];
      if (inode !== undefined) inodes.add(inode);
    } catch {
      // Closed between listing and reading.
    }
  }
  return inodes;
}

const LISTENING = '0A';
/** States of a TCP socket as /proc/net/tcp counts them. */
const STATES = [
  '',
  'established',
  'syn-sent',
  'syn-received',
  'fin-wait-1',
  'fin-wait-2',
  'time-wait',
  'closed',
  'close-wait',
  'last-ack',
  'listening',
  'closing',
];

export interface OpenSocket {
  readonly localPort: number;
  readonly remotePort: number;
  readonly state: string;
}

function portOf(hexAddress: string): number {
  return Number.parseInt(hexAddress.split(':')[1] ?? '', 16);
}

/** TCP sockets that the process has open, without listening ones and those to `exceptPort`. */
export function openTcpSockets(pid: number, exceptPort: number): readonly OpenSocket[] {
  const own = socketInodes(pid);
  const rows = ['tcp', 'tcp6'].flatMap((table) => readFileSync(`/proc/${pid}/net/${table}`, 'latin1').split('\n'));
  return rows.flatMap((row) => {
    const [, local = '', remote = '', state = '', , , , , , inode = ''] = row.trim().split(/\s+/);
    if (state === LISTENING || !own.has(inode) || portOf(remote) === exceptPort) return [];
    const name = STATES[Number.parseInt(state, 16)] ?? state;
    return [{ localPort: portOf(local), remotePort: portOf(remote), state: name }];
  });
}
