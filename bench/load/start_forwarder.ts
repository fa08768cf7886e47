import { z } from 'zod';
import { type Listening, startNodeProgram } from './programs.ts';

export const forwarderSettings = z.object({
  /** The target on this machine: a proxy, or with `connect: null` the upstream itself. */
  port: z.number(),
  connect: z.object({ authority: z.string(), authorization: z.string().nullable() }).nullable(),
});
export type ForwarderSettings = z.infer<typeof forwarderSettings>;

export function startForwarder(settings: ForwarderSettings): Promise<Listening> {
  return startNodeProgram(new URL('forwarder.ts', import.meta.url), settings);
}
