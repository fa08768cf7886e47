/** The machines that a filter exists for, by the name that Node gives them. */
export const FILTERED_MACHINES = ['x64', 'arm64'] as const;
export type FilteredMachine = (typeof FILTERED_MACHINES)[number];

/** The kernel's word for the machine in `struct seccomp_data` (linux/audit.h). */
export const AUDIT_ARCH: Readonly<Record<FilteredMachine, number>> = { x64: 0xc000003e, arm64: 0xc00000b7 };

/** A system call's number on x86_64 and on aarch64; null where it does not exist. */
type Numbers = readonly [x64: number | null, arm64: number | null];

/** Calls that no program in a sandbox may make, in groups with the reason. */
export const REFUSED_CALLS: Readonly<Record<string, Readonly<Record<string, Numbers>>>> = {
  'memory and descriptors of other processes': {
    ptrace: [101, 117],
    process_vm_readv: [310, 270],
    process_vm_writev: [311, 271],
    kcmp: [312, 272],
    pidfd_getfd: [438, 438],
  },
  'keyrings, which no namespace separates': {
    add_key: [248, 217],
    request_key: [249, 218],
    keyctl: [250, 219],
  },
  'the mount tree, and files by their inode': {
    mount: [165, 40],
    umount2: [166, 39],
    pivot_root: [155, 41],
    chroot: [161, 51],
    open_tree: [428, 428],
    move_mount: [429, 429],
    fsopen: [430, 430],
    fsconfig: [431, 431],
    fsmount: [432, 432],
    fspick: [433, 433],
    mount_setattr: [442, 442],
    open_tree_attr: [467, 467],
    name_to_handle_at: [303, 264],
    open_by_handle_at: [304, 265],
    fanotify_init: [300, 262],
    quotactl: [179, 60],
    quotactl_fd: [443, 443],
    swapon: [167, 224],
    swapoff: [168, 225],
  },
  'new namespaces, in which a program has every capability': {
    unshare: [272, 97],
    setns: [308, 268],
  },
  'large parts of the kernel that programs of a project do not use': {
    bpf: [321, 280],
    userfaultfd: [323, 282],
    perf_event_open: [298, 241],
    io_uring_setup: [425, 425],
    io_uring_enter: [426, 426],
    io_uring_register: [427, 427],
    lookup_dcookie: [212, 18],
    nfsservctl: [180, 42],
    uselib: [134, null],
    modify_ldt: [154, null],
    vhangup: [153, 58],
  },
  'the machine itself': {
    init_module: [175, 105],
    finit_module: [313, 273],
    delete_module: [176, 106],
    kexec_load: [246, 104],
    kexec_file_load: [320, 294],
    reboot: [169, 142],
    acct: [163, 89],
    syslog: [103, 116],
    iopl: [172, null],
    ioperm: [173, null],
    sethostname: [170, 161],
    setdomainname: [171, 162],
    settimeofday: [164, 170],
    clock_settime: [227, 112],
    adjtimex: [159, 171],
    clock_adjtime: [305, 266],
  },
};

/** Calls of which some are refused, by their arguments. */
export const CHECKED_CALLS = {
  ioctl: { x64: 16, arm64: 29 },
  socket: { x64: 41, arm64: 198 },
  socketpair: { x64: 53, arm64: 199 },
  clone: { x64: 56, arm64: 220 },
  clone3: { x64: 435, arm64: 435 },
} as const;

/** The numbers of the calls that are always refused. */
export function refusedNumbers(machine: FilteredMachine): readonly number[] {
  const at = FILTERED_MACHINES.indexOf(machine);
  return Object.values(REFUSED_CALLS).flatMap((group) => Object.values(group).flatMap((numbers) => numbers[at] ?? []));
}
