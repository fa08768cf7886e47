import { fileURLToPath } from 'node:url';
import type { Hardening } from './container_runtime.ts';

/**
 * What a container of an agent may do (decision 0019). The capabilities are the ones that the start as root needs: writing
 * the trust store whoever owns it, and becoming the agent's user. The agent itself holds none of them. The system calls are
 * a list of our own, since the default one of older engines lets a container without any network open sockets to the
 * hypervisor of a virtual machine (AF_VSOCK).
 */
export const AGENT_HARDENING: Hardening = {
  init: true,
  capabilities: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETUID', 'SETGID', 'KILL'],
  pidsLimit: 4096,
  seccompProfile: fileURLToPath(new URL('agent_seccomp.json', import.meta.url)),
};
