import { z } from 'zod';
import { APPROVALS } from '../../model/connector.ts';
import { EFFECTS } from '../../model/host_binding.ts';

/** The session for which the host token runs an operation: the gateway uses the host token, its clients do not. */
export const ACTING_SESSION_HEADER = 'svc-acting-session';

/** An operation that can be run, with what a program needs to call it. */
const listedOperation = z.object({
  connector_fqn: z.string(),
  connector_title: z.string(),
  operation: z.string(),
  summary: z.string(),
  description: z.string(),
  effect: z.enum(EFFECTS),
  approval: z.enum(APPROVALS),
  hosts: z.array(z.string()),
  /** JSON Schema of the inputs. */
  input_schema: z.looseObject({ type: z.literal('object') }),
  /** The arg of each property whose name differs from it. */
  input_names: z.record(z.string(), z.string()),
  /** The property that is the `host` of a run rather than an arg; null if there is only one host. */
  host_property: z.string().nullable(),
});
export type ListedOperation = z.infer<typeof listedOperation>;

/** In the order of connectors and of their specs. */
export const operationsReply = z.object({ items: z.array(listedOperation) });
