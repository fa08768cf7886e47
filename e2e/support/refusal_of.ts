import { z } from 'zod';
import type { SeenReply } from './raw_client.ts';
import type { Session, Svc } from './svc.ts';

const refusalBody = z.object({ error: z.object({ code: z.string(), message: z.string().min(10) }) });

/** A refusal, as the client received it and as the audit log has it. */
interface SeenRefusal {
  readonly status: number;
  readonly code: string;
  /** Type and reason of each event of the session. */
  readonly events: readonly (readonly [type: string, reason: unknown])[];
}

/** The refusal that is answered with `status` and `code` and recorded once under the same reason. */
export function refusal(status: number, code: string): SeenRefusal {
  return { status, code, events: [['sandbox.proxy.rejected', code]] };
}

/** Reads the refusal from a reply, ends the session and reads its events. */
export async function refusalOf(svc: Svc, session: Session, reply: SeenReply): Promise<SeenRefusal> {
  await session.end();
  const events = await svc.eventsOf(session);
  const body = refusalBody.safeParse(reply.json());
  return {
    status: reply.status,
    code: body.data?.error.code ?? `not a refusal: ${reply.raw.toString('latin1', 0, 500)}`,
    events: events.map(({ type, data }) => [type, data['svc.proxy.reason']] as const),
  };
}
