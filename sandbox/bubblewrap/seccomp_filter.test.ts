import { describe, expect, it } from 'vitest';
import type { BpfInstruction } from './bpf_program.ts';
import { encodeProgram, returns } from './bpf_program.ts';
import {
  ALLOW,
  EAFNOSUPPORT,
  ENOSYS,
  EPERM,
  filterInstructions,
  KILL_PROCESS,
  seccompFilter,
} from './seccomp_filter.ts';
import { AUDIT_ARCH, CHECKED_CALLS, FILTERED_MACHINES, type FilteredMachine, REFUSED_CALLS } from './system_calls.ts';

/** A system call as the filter sees it. */
interface Seen {
  readonly arch: number;
  readonly number: number;
  readonly args?: readonly number[];
}

/** What the kernel's interpreter would decide. */
function decide(program: readonly BpfInstruction[], { arch, number, args = [] }: Seen): number {
  let loaded = 0;
  for (let at = 0; at < program.length; at += 1) {
    const { code, jumpTrue, jumpFalse, value } = program[at] ?? returns(-1);
    if (code === 0x06) return value;
    if (code === 0x05) at += value;
    else if (code === 0x20) loaded = value === 0 ? number : value === 4 ? arch : (args[(value - 16) / 8] ?? 0);
    else {
      const holds = code === 0x15 ? loaded === value : (loaded & value) !== 0;
      at += holds ? jumpTrue : jumpFalse;
    }
  }
  throw new Error('the filter ended without an action');
}

const callOf = (machine: FilteredMachine, name: keyof typeof CHECKED_CALLS, ...args: readonly number[]): number =>
  decide(filterInstructions(machine), { arch: AUDIT_ARCH[machine], number: CHECKED_CALLS[name][machine], args });

describe.each(FILTERED_MACHINES)('the filter for %s', (machine) => {
  const arch = AUDIT_ARCH[machine];
  const program = filterInstructions(machine);

  it('refuses each listed call', () => {
    const at = FILTERED_MACHINES.indexOf(machine);
    const calls = Object.values(REFUSED_CALLS).flatMap((group) => Object.entries(group));
    const decided = calls.flatMap(([name, numbers]) =>
      [numbers[at] ?? []].flat().map((number) => [name, decide(program, { arch, number })]),
    );
    expect(decided.length).toBeGreaterThan(45);
    expect(decided.filter(([, action]) => action !== EPERM)).toEqual([]);
  });

  it('allows ordinary calls', () => {
    const ordinary = machine === 'x64' ? [0, 1, 2, 9, 59, 202, 257, 281, 334] : [63, 64, 56, 222, 221, 98, 293];
    for (const number of ordinary) expect(decide(program, { arch, number })).toBe(ALLOW);
  });

  it('ends a program that calls by the numbers of another machine', () => {
    for (const foreign of [0x40000003, 0x40000028, machine === 'x64' ? AUDIT_ARCH.arm64 : AUDIT_ARCH.x64]) {
      expect(decide(program, { arch: foreign, number: 1 })).toBe(KILL_PROCESS);
    }
  });

  it.each([
    ['what types at a terminal', 'ioctl', [0, 0x5412], EPERM],
    ['what pastes at a console', 'ioctl', [0, 0x541c], EPERM],
    ['other uses of a terminal', 'ioctl', [0, 0x5413], ALLOW],
    ['an ordinary new process', 'clone', [0x01200011], ALLOW],
    ['a new thread', 'clone', [0x003d0f00], ALLOW],
    ['a process in a new user namespace', 'clone', [0x10000011], EPERM],
    ['a process in a new network', 'clone', [0x40000011], EPERM],
    ['a process with new mounts', 'clone', [0x00020011], EPERM],
    ['flags in memory, so that the older call is used', 'clone3', [0], ENOSYS],
    ['a socket in the file system', 'socket', [1, 1, 0], ALLOW],
    ['a socket of IPv4', 'socket', [2, 1, 0], ALLOW],
    ['a socket of IPv6', 'socket', [10, 2, 0], ALLOW],
    ['the list of interfaces', 'socket', [16, 3, 0], ALLOW],
    ['another netlink', 'socket', [16, 3, 9], EAFNOSUPPORT],
    ['packets', 'socket', [17, 3, 0], EAFNOSUPPORT],
    ['the hypervisor', 'socket', [40, 1, 0], EAFNOSUPPORT],
    ['Bluetooth', 'socket', [31, 1, 0], EAFNOSUPPORT],
    ["the kernel's cipher interface", 'socket', [38, 5, 0], EAFNOSUPPORT],
    ['a pair of another family', 'socketpair', [40, 1, 0], EAFNOSUPPORT],
    ['an ordinary pair', 'socketpair', [1, 1, 0], ALLOW],
  ] as const)('decides about %s', (_what, name, args, action) => {
    expect(callOf(machine, name, ...args)).toBe(action);
  });
});

it('has no numbers of x32', () => {
  const program = filterInstructions('x64');
  expect(decide(program, { arch: AUDIT_ARCH.x64, number: 0x40000000 | 101 })).toBe(ENOSYS);
});

it('is written as the kernel reads it', () => {
  const bytes = seccompFilter('x64');
  expect(bytes.length).toBe(filterInstructions('x64').length * 8);
  expect(bytes.subarray(0, 16).toString('hex')).toBe('2000000004000000150000013e0000c0');
  expect(() => encodeProgram([])).toThrow(RangeError);
});
