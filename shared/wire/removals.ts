import { z } from 'zod';
import { owner, time } from './primitives.ts';

export const REMOVABLE_KINDS = ['secret', 'binding', 'connector', 'mcp_server'] as const;

const removalUse = z.object({
  kind: z.enum(['binding', 'client_certificate', 'connector', 'mcp_server']),
  id: z.string(),
  name: z.string(),
});
export type RemovalUse = z.infer<typeof removalUse>;

/**
 * What a removal does. `requests_refused`, `servers_stopped`: what stops working. `credential_lost`: requests go on without
 * the credential. `next_credential`: another binding applies instead. `approvals_end`: operations that needed an approval no
 * longer do. `tools_lost`: tools that agents no longer see. `deleted_with_it`: what is deleted with it for good. `kept`: what
 * stays. `unused`: it is not in use. `for_everyone`: it is the enterprise's.
 */
export const REMOVAL_EFFECTS = [
  'requests_refused',
  'servers_stopped',
  'credential_lost',
  'next_credential',
  'approvals_end',
  'tools_lost',
  'deleted_with_it',
  'kept',
  'unused',
  'for_everyone',
] as const;

const removalEffect = z.object({
  code: z.enum(REMOVAL_EFFECTS),
  /** A sentence for people; it ends in a colon if `uses` or `names` follow. */
  text: z.string(),
  /** The bindings, connectors and MCP servers that the sentence is about. */
  uses: z.array(removalUse),
  /** Names that it is about, of credentials or operations. */
  names: z.array(z.string()),
});
export type RemovalEffect = z.infer<typeof removalEffect>;

/** `GET .../deletion`: what deleting something would do. Nothing is changed. */
export const removalPreview = z
  .object({
    kind: z.enum(REMOVABLE_KINDS),
    name: z.string(),
    owner,
    /** False while something in use refers to it: the deletion is then refused with `secret_in_use`. */
    allowed: z.boolean(),
    effects: z.array(removalEffect),
    /** When it was last used, as far as the latest audit events tell. */
    last_used_at: time.nullable(),
  })
  .meta({ id: 'RemovalPreview' });
export type RemovalPreview = z.infer<typeof removalPreview>;
