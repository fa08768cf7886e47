import { z } from 'zod';
import { id } from '../primitives.ts';

/** The kinds of things that a merge moves. */
export const MERGED_KINDS = [
  'secret',
  'host_binding',
  'tunnel_host',
  'client_certificate',
  'connector',
  'mcp_server',
] as const;
export type MergedKind = (typeof MERGED_KINDS)[number];

const count = z.number().int();

/** `GET /v1/enterprises/{id}/merge`: what would move here from an enterprise in which the caller is alone. */
export const mergePreview = z
  .object({
    enterprise_id: id('ent'),
    /** What `confirm` has to repeat. */
    slug: z.string(),
    name: z.string(),
    /** How many of each kind move. */
    moves: z.object({
      secret: count,
      host_binding: count,
      tunnel_host: count,
      // A control plane of an earlier version has none.
      client_certificate: count.default(0),
      connector: count,
      mcp_server: count,
    }),
    /** Names that are taken here, or twice there: nothing moves until each is renamed or deleted on one side. */
    clashes: z.array(z.object({ kind: z.enum(MERGED_KINDS), name: z.string() })),
  })
  .meta({ id: 'MergePreview' });
export type MergePreview = z.infer<typeof mergePreview>;

/** `POST /v1/enterprises/{id}/merge`. */
export const mergeInput = z.strictObject({ confirm: z.string().max(200) }).meta({ id: 'Merge' });

/** What moved. */
export const mergeReply = mergePreview.omit({ clashes: true }).meta({ id: 'Merged' });
export type MergeReply = z.infer<typeof mergeReply>;
