import { fileURLToPath } from 'node:url';
import type { Hardening } from './container_runtime.ts';

/**
 * The hardening of an agent's container (decision 0019). The capabilities are those that the start as root needs: to write a
 * trust store of any owner, and to become the agent's user. The agent has none of them. The system calls are our own list,
 * because the default list of older engines lets a container without a network open sockets to a virtual machine's hypervisor
 * (AF_VSOCK).
 */
export const AGENT_HARDENING: Hardening = {
  init: true,
  capabilities: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETUID', 'SETGID', 'KILL'],
  pidsLimit: 4096,
  seccompProfile: fileURLToPath(new URL('agent_seccomp.json', import.meta.url)),
};
