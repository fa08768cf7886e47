import { z } from 'zod';

export const sandboxRuntimeSettings = z.object({
  proxyModule: z.string(),
  authorityModule: z.string(),
  /** Where to write its CA certificate. */
  caFile: z.string(),
  upstreamCaFile: z.string(),
  password: z.string(),
  bearer: z.string(),
  boundHosts: z.array(z.string()),
  otherHosts: z.array(z.string()),
});
export type SandboxRuntimeSettings = z.infer<typeof sandboxRuntimeSettings>;
