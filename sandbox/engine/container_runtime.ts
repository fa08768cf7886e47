import type { ChildProcess } from 'node:child_process';
import type { Result } from '../../shared/model/result.ts';

/** Why the engine did not do what was asked. */
export type RuntimeProblemReason =
  /** The program is not installed. */
  | 'engine_missing'
  /** Nobody listens on the engine's socket. */
  | 'engine_unreachable'
  /** The socket is there, and this user may not use it. */
  | 'engine_forbidden'
  /** The engine runs on another machine, where neither our mounts nor our proxy are. */
  | 'engine_remote'
  | 'engine_timeout'
  | 'image_missing'
  | 'container_missing'
  | 'network_missing'
  /** The engine is there and says no; the message is its own. */
  | 'engine_refused';

/** A problem with the engine, in words: what is wrong, and what to do about it. */
export interface RuntimeProblem {
  readonly reason: RuntimeProblemReason;
  readonly message: string;
  readonly fixes: readonly string[];
}

/** What an image is set up to run. */
export interface ImageConfig {
  /** `sha256:...` */
  readonly id: string;
  readonly user: string;
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  /** `NAME=value` each. */
  readonly env: readonly string[];
  readonly workdir: string;
  readonly architecture: string;
}

/** A directory or file of the host in the container. */
export interface BindMount {
  /** Absolute, symbolic links resolved. */
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

/** What the processes of a container may do (decision 0019). */
export interface Hardening {
  /** A process 1 of the engine's own, which reaps what the agent leaves behind. */
  readonly init: boolean;
  /** Kept of the capabilities; every other one is dropped. */
  readonly capabilities: readonly string[];
  readonly pidsLimit: number;
  /** The file that lists the system calls it may make. */
  readonly seccompProfile: string;
}

export interface ContainerSpec {
  /** A reference, or better the id of an image that was checked. */
  readonly image: string;
  readonly name: string | null;
  readonly labels: Readonly<Record<string, string>>;
  /** Names go onto the engine's command line, values only through the environment of its program. */
  readonly env: Readonly<Record<string, string>>;
  readonly mounts: readonly BindMount[];
  /** Null: the image's own. */
  readonly workdir: string | null;
  readonly user: string | null;
  readonly entrypoint: string | null;
  readonly command: readonly string[];
  readonly tty: boolean;
  readonly stdin: boolean;
  /** Null: the engine's default network. */
  readonly network: 'none' | null;
  /** Null: the engine's defaults. */
  readonly hardening: Hardening | null;
  /**
   * Whether the proxy variables of the user's engine settings come into the container. They may hold the password of
   * another proxy, and would lead past ours.
   */
  readonly enginesProxies: 'kept' | 'left_out';
}

/** A program to start in a container that runs. */
export interface ExecSpec {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly user: string | null;
  readonly workdir: string | null;
  readonly tty: boolean;
  readonly stdin: boolean;
  /** Where the program's three streams go; `inherit` are ours. */
  readonly stdio: 'inherit' | 'pipe';
}

export interface ContainerState {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly running: boolean;
  /** Its first process on the host; null while there is none. */
  readonly pid: number | null;
  /** False when the engine never got as far as starting a process in it. */
  readonly wasStarted: boolean;
  readonly exitCode: number;
  /** What the engine says kept it from starting. */
  readonly error: string;
}

export interface ListedContainer {
  readonly id: string;
  readonly name: string;
  readonly running: boolean;
  /** The labels of `container_labels.ts`; null where the container has none. */
  readonly session: string | null;
  readonly home: string | null;
}

/** A container engine on this machine. One contract suite holds for every adapter. */
export interface ContainerRuntime {
  /** `docker` or `podman`. */
  readonly program: string;
  /** Where the engine listens, such as `unix:///var/run/docker.sock`; every call goes there. */
  readonly endpoint: string;
  inspectImage(image: string): Promise<Result<ImageConfig, RuntimeProblem>>;
  /** Makes a container without starting it. The value is its id. An absent image is not fetched. */
  create(spec: ContainerSpec): Promise<Result<string, RuntimeProblem>>;
  /**
   * Starts it with our streams; the child's exit code is the container's. Without a terminal of its own the child hears no
   * key of ours: what ends a client ends it without its container, so signals go through {@link signal}.
   */
  start(id: string, streams: { readonly stdin: boolean; readonly tty: boolean }): ChildProcess;
  /** Sends a signal to the container's first process. */
  signal(id: string, name: NodeJS.Signals): Promise<Result<void, RuntimeProblem>>;
  /** Starts it and leaves it to itself. */
  startDetached(id: string): Promise<Result<void, RuntimeProblem>>;
  /** Null when there is no such container. */
  inspect(id: string): Promise<Result<ContainerState | null, RuntimeProblem>>;
  /** The id on the host of the container's first process; null while it does not run. */
  pidOf(id: string): Promise<Result<number | null, RuntimeProblem>>;
  /** Runs a shell script as root in a new container of the image, without a network; the value is what it printed. */
  runProbe(image: string, script: string): Promise<Result<string, RuntimeProblem>>;
  exec(id: string, spec: ExecSpec): ChildProcess;
  /** Kills and removes it, with its anonymous volumes. Removing what is gone is fine. */
  remove(id: string): Promise<Result<void, RuntimeProblem>>;
  /** Copies a file or folder out of a container. A symbolic link is copied as a link. */
  copyOut(id: string, path: string, destination: string): Promise<Result<void, RuntimeProblem>>;
  logs(id: string, wanted: { readonly follow: boolean }): ChildProcess;
  /** Resolves with the exit code when the container has ended. */
  wait(id: string): Promise<Result<number, RuntimeProblem>>;
  listByLabel(label: string, value: string): Promise<Result<readonly ListedContainer[], RuntimeProblem>>;
  /** The host's address on a network of the engine (`bridge`), null when it has none. */
  gatewayOf(network: string): Promise<Result<string | null, RuntimeProblem>>;
}
