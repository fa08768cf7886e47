import {
  type BpfInstruction,
  encodeProgram,
  load,
  returns,
  skip,
  unlessAnyBitSkip,
  unlessEqualSkip,
} from './bpf_program.ts';
import { AUDIT_ARCH, CHECKED_CALLS, type FilteredMachine, refusedNumbers } from './system_calls.ts';

/** The actions of linux/seccomp.h; a refusal's low half is the error that the program sees. */
export const ALLOW = 0x7fff0000;
export const KILL_PROCESS = 0x80000000;
const FAIL = 0x00050000;
export const EPERM = FAIL | 1;
/** As of a kernel without the call, so that the C library falls back to an older one. */
export const ENOSYS = FAIL | 38;
export const EAFNOSUPPORT = FAIL | 97;

/** Offsets in `struct seccomp_data`. Of an argument the low word: the kernel ignores the rest of each that is checked here. */
const NUMBER = 0;
const ARCH = 4;
const argument = (at: number): number => 16 + 8 * at;

/** A call of x86_64 with this bit is one of x32, whose numbers are others. */
const X32_BIT = 0x40000000;
/** Every CLONE_NEW* flag that `clone` has. */
const NEW_NAMESPACES = 0x7e020000;
/** Both put text into a terminal's input, as if a person had typed it. */
const TIOCSTI = 0x5412;
const TIOCLINUX = 0x541c;
const AF_UNIX = 1;
const AF_INET = 2;
const AF_INET6 = 10;
const AF_NETLINK = 16;
const NETLINK_ROUTE = 0;

/**
 * The seccomp filter of a sandbox (decision 0123), as the bytes that bubblewrap passes to the kernel. It only takes away: every
 * other call is decided by the kernel as usual.
 */
export function seccompFilter(machine: FilteredMachine): Buffer {
  return encodeProgram(filterInstructions(machine));
}

export function filterInstructions(machine: FilteredMachine): readonly BpfInstruction[] {
  return [
    load(ARCH),
    unlessEqualSkip(AUDIT_ARCH[machine], 1),
    // The numbers below are those of this machine alone.
    skip(1),
    returns(KILL_PROCESS),
    load(NUMBER),
    ...(machine === 'x64' ? [unlessAnyBitSkip(X32_BIT, 1), returns(ENOSYS)] : []),
    ...refusedNumbers(machine).flatMap((number) => [unlessEqualSkip(number, 1), returns(EPERM)]),
    // Its flags are in memory, which a filter cannot read.
    unlessEqualSkip(CHECKED_CALLS.clone3[machine], 1),
    returns(ENOSYS),
    ...ofCall(CHECKED_CALLS.clone[machine], [
      load(argument(0)),
      unlessAnyBitSkip(NEW_NAMESPACES, 1),
      returns(EPERM),
      returns(ALLOW),
    ]),
    ...ofCall(CHECKED_CALLS.ioctl[machine], [
      load(argument(1)),
      unlessEqualSkip(TIOCSTI, 1),
      returns(EPERM),
      unlessEqualSkip(TIOCLINUX, 1),
      returns(EPERM),
      returns(ALLOW),
    ]),
    ...ofCall(CHECKED_CALLS.socket[machine], socketChecks()),
    ...ofCall(CHECKED_CALLS.socketpair[machine], socketChecks()),
    returns(ALLOW),
  ];
}

/** Only families that end in the sandbox's own network or in its files. AF_VSOCK would lead to the hypervisor. */
function socketChecks(): readonly BpfInstruction[] {
  return [
    load(argument(0)),
    ...[AF_UNIX, AF_INET, AF_INET6].flatMap((family) => [unlessEqualSkip(family, 1), returns(ALLOW)]),
    unlessEqualSkip(AF_NETLINK, 3),
    load(argument(2)),
    unlessEqualSkip(NETLINK_ROUTE, 1),
    returns(ALLOW),
    returns(EAFNOSUPPORT),
  ];
}

/** Checks that end with an action each, for one call; after them the number is still loaded for every other call. */
function ofCall(number: number, checks: readonly BpfInstruction[]): readonly BpfInstruction[] {
  return [unlessEqualSkip(number, checks.length), ...checks];
}
