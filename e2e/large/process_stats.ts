import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Resident memory of a process in bytes. */
function residentBytes(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
  if (kilobytes === undefined) throw new Error(`process ${pid} has no resident memory`);
  return Number(kilobytes) * 1024;
}

/** Watches the memory of a process; `stop` returns its largest growth. */
export function watchMemory(pid: number): { stop(): number } {
  const atStart = residentBytes(pid);
  let most = atStart;
  const look = (): void => void (most = Math.max(most, residentBytes(pid)));
  const timer = setInterval(look, 50);
  return {
    stop: () => {
      clearInterval(timer);
      look();
      return most - atStart;
    },
  };
}

/** A connected TCP socket, from its process's side. */
interface HeldSocket {
  readonly localPort: number;
  readonly remotePort: number;
}

/** A process's connected TCP sockets over IPv4. */
export function heldSockets(pid: number): HeldSocket[] {
  const held = new Set(descriptors(pid).map((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1]));
  const lines = readFileSync(`/proc/${pid}/net/tcp`, 'latin1').trim().split('\n').slice(1);
  return lines.flatMap((line) => {
    const [, local = '', remote = '', state, , , , , , inode] = line.trim().split(/\s+/);
    return state === LISTENING || !held.has(inode) ? [] : [{ localPort: portOf(local), remotePort: portOf(remote) }];
  });
}

const LISTENING = '0A';

/** The port of an address in the kernel's form, hexadecimal: `0100007F:01BB`. */
function portOf(address: string): number {
  return Number.parseInt(address.split(':')[1] ?? '', 16);
}

/** The targets of a process's open descriptors; one that is closed meanwhile is omitted. */
function descriptors(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${name}`)];
    } catch {
      return [];
    }
  });
}
