import type { Hardening } from './container_runtime.ts';

/**
 * What a container of an agent may do (decision 0019). The capabilities are the ones that the start as root needs: writing
 * the trust store whoever owns it, and becoming the agent's user. The agent itself holds none of them.
 */
export const AGENT_HARDENING: Hardening = {
  init: true,
  capabilities: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETUID', 'SETGID', 'KILL'],
  pidsLimit: 4096,
};
