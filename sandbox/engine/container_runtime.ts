import type { ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { Result } from '../../shared/model/result.ts';
import type { EngineName } from './engine_address.ts';
import type { EngineHost } from './engine_host.ts';

/** Why a call to the engine failed. */
export type RuntimeFailureReason =
  /** The program is not installed. */
  | 'engine_missing'
  /** Nothing listens on the engine's socket. */
  | 'engine_unreachable'
  /** The socket exists, but this user may not use it. */
  | 'engine_forbidden'
  /** The engine runs on another machine, without our mounts and our proxy. */
  | 'engine_remote'
  | 'engine_timeout'
  | 'image_missing'
  | 'container_missing'
  | 'network_missing'
  /** The engine refused; the message is its own. */
  | 'engine_refused';

/** A problem with the engine: what is wrong, and the fix. */
export interface RuntimeFailure {
  readonly reason: RuntimeFailureReason;
  readonly message: string;
  readonly fixes: readonly string[];
}

/** An image's settings. */
export interface ImageConfig {
  /** `sha256:...` */
  readonly id: string;
  readonly user: string;
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  /** Entries of the form `NAME=value`. */
  readonly env: readonly string[];
  readonly workdir: string;
  readonly architecture: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** A directory or file of the host, mounted into the container. */
export interface BindMount {
  /** Absolute, symbolic links resolved. */
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

/** A named volume of the engine. A new one begins with what the image has at the target. */
export interface VolumeMount {
  readonly volume: string;
  readonly target: string;
}

/** The restrictions on a container's processes (decision 0019). */
export interface Hardening {
  /** Use the engine's init as process 1, which reaps orphaned processes. */
  readonly init: boolean;
  /** The capabilities to keep; all others are dropped. */
  readonly capabilities: readonly string[];
  readonly pidsLimit: number;
  /** The file with the allowed system calls (seccomp). */
  readonly seccompProfile: string;
}

/** Limits that fit a program which keeps no files. */
export interface Confinement {
  /** Memory without swap, in MiB. */
  readonly memory: number;
  readonly cpus: number;
  /** Directories in memory, each with its options; everything else is read-only. */
  readonly tmpfs: readonly string[];
}

export interface ContainerSpec {
  /** A reference, preferably the id of a checked image. */
  readonly image: string;
  readonly name: string | null;
  readonly labels: Readonly<Record<string, string>>;
  /** Values never go on a command line: they are in a call of the engine's API, or in the environment of its program. */
  readonly env: Readonly<Record<string, string>>;
  readonly mounts: readonly BindMount[];
  readonly volumes?: readonly VolumeMount[];
  /** Null: the image's own. */
  readonly workdir: string | null;
  readonly user: string | null;
  readonly entrypoint: string | null;
  readonly command: readonly string[];
  readonly tty: boolean;
  readonly stdin: boolean;
  /** Null: the engine's default network. A container's id: the network of that container, which has to run at the start. */
  readonly network: 'none' | { readonly container: string } | null;
  /** Null: the engine's defaults. */
  readonly hardening: Hardening | null;
  readonly confinement?: Confinement;
  /** The engine removes it when it has ended. */
  readonly removedAtEnd?: boolean;
  /** The engine keeps nothing of what it prints. Whoever is attached gets it all the same. */
  readonly keepsNoLog?: boolean;
  /**
   * Whether the container gets the proxy variables of the user's engine settings. They may contain another proxy's password and
   * would bypass our proxy.
   */
  readonly enginesProxies: 'kept' | 'left_out';
}

/** A program to start in a running container. */
export interface ExecSpec {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly user: string | null;
  readonly workdir: string | null;
  readonly tty: boolean;
  readonly stdin: boolean;
  /** The program's three streams; `inherit` means ours. */
  readonly stdio: 'inherit' | 'pipe';
}

/** The standard streams of a container's first process. The end of the input is seen by the program, and so is a lost connection. */
export interface ContainerStreams {
  readonly input: Writable;
  readonly output: Readable;
  /** The end of what it has printed on its standard error. */
  readonly said: () => string;
}

export interface ContainerState {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly running: boolean;
  /** The host's process id of its first process; null while there is none. */
  readonly pid: number | null;
  /** False if the engine never started a process in it. */
  readonly wasStarted: boolean;
  readonly exitCode: number;
  /** The engine's reason why it did not start. */
  readonly error: string;
}

export interface ListedContainer {
  readonly id: string;
  readonly name: string;
  readonly running: boolean;
  /** The labels of `container_labels.ts`; null if it has none. */
  readonly session: string | null;
  readonly home: string | null;
}

/** A container engine on this machine. All adapters pass one contract suite. */
export interface ContainerRuntime {
  readonly program: EngineName;
  /** The engine's endpoint, such as `unix:///var/run/docker.sock` (`engine_address.ts`); every call uses it. */
  readonly endpoint: string;
  inspectImage(image: string): Promise<Result<ImageConfig, RuntimeFailure>>;
  /** Makes an image without a single file, for programs that are mounted. An image of that name is replaced. */
  makeEmptyImage(name: string): Promise<Result<void, RuntimeFailure>>;
  /** Creates a container without starting it; returns its id. Does not pull a missing image. */
  create(spec: ContainerSpec): Promise<Result<string, RuntimeFailure>>;
  /**
   * Starts it with our streams; the child's exit code is the container's. Without a terminal, the child gets no key presses of
   * ours: a signal to the engine's client would end it without its container, so signals go through {@link signal}.
   */
  start(id: string, streams: { readonly stdin: boolean; readonly tty: boolean }): ChildProcess;
  /** Sends a signal to the container's first process. */
  signal(id: string, name: NodeJS.Signals): Promise<Result<void, RuntimeFailure>>;
  /** Starts a container that was created with `stdin`, with its streams as pipes. */
  startWithStreams(id: string): Promise<Result<ContainerStreams, RuntimeFailure>>;
  /** Starts it detached. */
  startDetached(id: string): Promise<Result<void, RuntimeFailure>>;
  /** Null if there is no such container. */
  inspect(id: string): Promise<Result<ContainerState | null, RuntimeFailure>>;
  /** The host's process id of its first process; null while it is not running. */
  pidOf(id: string): Promise<Result<number | null, RuntimeFailure>>;
  /** Runs a shell script as root in a new container of the image without a network; returns its output. */
  runProbe(image: string, script: string): Promise<Result<string, RuntimeFailure>>;
  exec(id: string, spec: ExecSpec): ChildProcess;
  /** Kills and removes it with its anonymous volumes. Succeeds if it does not exist. */
  remove(id: string): Promise<Result<void, RuntimeFailure>>;
  logs(id: string, wanted: { readonly follow: boolean }): ChildProcess;
  /** Resolves with the exit code when the container has ended. */
  wait(id: string): Promise<Result<number, RuntimeFailure>>;
  listByLabel(label: string, value: string): Promise<Result<readonly ListedContainer[], RuntimeFailure>>;
  /** The system that containers run on. */
  host(): Promise<Result<EngineHost, RuntimeFailure>>;
  /** The host's address on an engine network (such as `bridge`); null if it has none. */
  gatewayOf(network: string): Promise<Result<string | null, RuntimeFailure>>;
}
