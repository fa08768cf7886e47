import { spawnSync } from 'node:child_process';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { LaunchProblem } from '../launch/launch_error.ts';
import { findProgram, type ProgramFacts, programFacts } from './find_program.ts';
import { readKernelFile } from './run_sandbox.ts';
import { FILTERED_MACHINES, type FilteredMachine } from './system_calls.ts';

/** bubblewrap on this machine, and which filter fits. */
export interface Bubblewrap {
  readonly program: string;
  readonly machine: FilteredMachine;
  /** Whether it can limit the size of a directory in memory; absent if that was not looked up. */
  readonly limitsSizes?: boolean;
}

export interface MachineFacts extends ProgramFacts {
  readonly platform: string;
  readonly arch: string;
}

const CONTAINER_INSTEAD = 'In a container instead: svc launch AGENT';
const MAC_INSTEAD = 'By sandbox-exec instead, which was not tried on a Mac: svc run --sandbox AGENT';

export function machineFacts(path: string): MachineFacts {
  return { platform: process.platform, arch: process.arch, ...programFacts(path) };
}

/** bubblewrap, or why this machine can have no such sandbox. */
export function findBubblewrap({ platform, arch, ...where }: MachineFacts): Result<Bubblewrap, LaunchProblem> {
  if (platform !== 'linux') {
    const nearest = platform === 'darwin' ? MAC_INSTEAD : CONTAINER_INSTEAD;
    return err({ message: `a sandbox of bubblewrap needs Linux, and this is ${platform}`, fixes: [nearest] });
  }
  const machine = FILTERED_MACHINES.find((each) => each === arch);
  if (machine === undefined) {
    return err({
      message: `the sandbox's filter of system calls exists for x86_64 and aarch64, and this machine is ${arch}`,
      fixes: [CONTAINER_INSTEAD],
    });
  }
  const program = findProgram('bwrap', where);
  if (program !== null) return ok({ program, machine });
  return err({
    message:
      'bubblewrap is not installed: there is no bwrap in the folders of the system or on PATH, outside of this folder',
    fixes: ['Install it: apt install bubblewrap, dnf install bubblewrap, apk add bubblewrap', CONTAINER_INSTEAD],
  });
}

/** What bubblewrap's own failure is about. */
export interface KernelFacts {
  readonly uid: number | null;
  /** Texts of files below `/proc/sys`; empty without the file. */
  readonly apparmorRestricts: string;
  readonly unprivilegedClone: string;
  readonly mostUserNamespaces: string;
  /** The kernel's release, such as `6.1.0-18-amd64`. */
  readonly release: string;
  /** What bubblewrap said. */
  readonly said: string;
}

export function kernelFacts(said: string): KernelFacts {
  return {
    uid: process.getuid?.() ?? null,
    apparmorRestricts: readKernelFile('/proc/sys/kernel/apparmor_restrict_unprivileged_userns'),
    unprivilegedClone: readKernelFile('/proc/sys/kernel/unprivileged_userns_clone'),
    mostUserNamespaces: readKernelFile('/proc/sys/user/max_user_namespaces'),
    release: readKernelFile('/proc/sys/kernel/osrelease'),
    said,
  };
}

/** Why bubblewrap could make no sandbox, and the nearest way to one. */
export function whyNoSandbox(facts: KernelFacts): LaunchProblem {
  const isRoot = facts.uid === 0;
  // `4.4.0-19041-Microsoft`; that of WSL 2 is a Linux kernel, `...-microsoft-standard-WSL2`.
  if (facts.release.endsWith('-Microsoft')) {
    return forbidden('this is WSL 1, which has no namespaces', [
      'Change the distribution to WSL 2: wsl --set-version NAME 2',
    ]);
  }
  if (facts.mostUserNamespaces === '0') {
    return forbidden('the kernel allows no user namespaces (user.max_user_namespaces is 0)', [
      'Allow them: sudo sysctl user.max_user_namespaces=15000',
    ]);
  }
  if (!isRoot && facts.unprivilegedClone === '0') {
    return forbidden('the kernel allows user namespaces to root alone (kernel.unprivileged_userns_clone is 0)', [
      'Allow them: sudo sysctl kernel.unprivileged_userns_clone=1',
    ]);
  }
  if (!isRoot && facts.apparmorRestricts === '1') {
    return forbidden('AppArmor forbids user namespaces to bubblewrap, as Ubuntu does since 23.10', [
      'Allow them to bubblewrap: give /etc/apparmor.d/bwrap the profile of docs/guides/sandbox.md, then sudo systemctl reload apparmor',
    ]);
  }
  const said = facts.said.trim().replace(/^bwrap: /, '');
  return forbidden(`bubblewrap cannot make a sandbox here${said === '' ? '' : `: ${said}`}`, [
    'In a container, an engine has to allow it: docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined',
  ]);
}

function forbidden(message: string, fixes: readonly string[]): LaunchProblem {
  return { message, fixes: [...fixes, CONTAINER_INSTEAD] };
}

/** bubblewrap 0.7 and later can limit the size of a directory in memory. */
export function withVersion(bubblewrap: Bubblewrap): Bubblewrap {
  const { stdout } = spawnSync(bubblewrap.program, ['--version'], { encoding: 'utf8' });
  const [, major = '0', minor = '0'] = /(\d+)\.(\d+)/.exec(stdout ?? '') ?? [];
  return { ...bubblewrap, limitsSizes: Number(major) > 0 || Number(minor) >= 7 };
}

const PROBE = ['user', 'pid', 'ipc', 'uts', 'net'].map((name) => `--unshare-${name}`);

/** Whether bubblewrap can make a sandbox here; it takes some milliseconds. */
export function probeBubblewrap({ program }: Bubblewrap): Result<void, LaunchProblem> {
  const args = [
    ...PROBE,
    '--unshare-cgroup-try',
    '--ro-bind',
    '/',
    '/',
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    '--',
    '/bin/sh',
    '-c',
    ':',
  ];
  const tried = spawnSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'] });
  return tried.status === 0 ? ok(undefined) : err(whyNoSandbox(kernelFacts(tried.stderr ?? '')));
}

/** bubblewrap on this machine, if it can make a sandbox here. */
export function openBubblewrap(path: string): Result<Bubblewrap, LaunchProblem> {
  const found = findBubblewrap(machineFacts(path));
  if (!found.ok) return found;
  const made = probeBubblewrap(found.value);
  return made.ok ? found : made;
}
