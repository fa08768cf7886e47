import { z } from 'zod';
import { APPROVALS } from '../model/connector.ts';
import { EFFECTS } from '../model/host_binding.ts';

/** The session for which the host runs an operation: the gateway of MCP servers is the host's, its clients are not. */
export const ACTING_SESSION_HEADER = 'svc-acting-session';

/** An operation that can be run, with what a program needs to call it. */
export const listedOperation = z.object({
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
  /** The arg that a property stands for, for each whose name is another one. */
  input_names: z.record(z.string(), z.string()),
  /** The property that is the `host` of a run and no arg; null when there is only one host. */
  host_property: z.string().nullable(),
});
export type ListedOperation = z.infer<typeof listedOperation>;

/** In the order of connectors and of their specs. */
export const operationsReply = z.object({ items: z.array(listedOperation) });
