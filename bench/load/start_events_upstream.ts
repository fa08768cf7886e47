import { z } from 'zod';
import { type Listening, startNodeProgram } from './programs.ts';

export const EVENTS_HOST = 'events.localhost';

export const eventsUpstreamSettings = z.object({ certFile: z.string(), keyFile: z.string() });

export function startEventsUpstream(settings: z.infer<typeof eventsUpstreamSettings>): Promise<Listening> {
  return startNodeProgram(new URL('events_upstream.ts', import.meta.url), settings);
}
