/** The system that an engine's containers run on, as the engine says. */
export interface EngineHost {
  /** The release of its kernel; null if the engine does not say. */
  readonly kernelRelease: string | null;
  /** Its name, such as `Debian GNU/Linux 12 (bookworm)` or `Docker Desktop`; null if the engine does not say. */
  readonly operatingSystem: string | null;
}

/** Docker Desktop in WSL 2 has the kernel of the other distributions, and its containers in a machine's part of its own. */
const DOCKER_DESKTOP = 'Docker Desktop';

/**
 * Whether an engine's containers run in a virtual machine, and so have no process and no network here. Of an engine that does not say,
 * or that has the kernel of this machine in a virtual machine too, this is not known: each of its processes has to be proven
 * (`container_namespace.ts`).
 */
export function isInVirtualMachine({ kernelRelease, operatingSystem }: EngineHost, ownKernelRelease: string): boolean {
  return operatingSystem === DOCKER_DESKTOP || (kernelRelease !== null && kernelRelease !== ownKernelRelease);
}
