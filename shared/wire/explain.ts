import { z } from 'zod';
import { EMIT_MECHANISMS, INJECTION_SCHEMES, OWNERS } from '../model/host_binding.ts';
import { REFUSALS, type RefusalReason } from '../model/refusal.ts';

const REASONS = Object.keys(REFUSALS).filter((reason): reason is RefusalReason => reason in REFUSALS);

/** `POST /v1/host-bindings/explain`. */
export const explainInput = z
  .strictObject({
    method: z.string({ error: 'is missing: write the method, such as GET' }).max(64),
    url: z.string({ error: 'is missing: write the URL, such as https://api.example.com/v1/items' }).max(8192),
  })
  .meta({ id: 'ExplainInput' });
export type ExplainInput = z.input<typeof explainInput>;

/** Which path a request would take, and why: the shape of `Explanation` in shared/explain. */
export const explanationRecord = z
  .object({
    path: z.enum(['binding', 'passthrough', 'refused']),
    reason: z.enum(REASONS).nullable(),
    status: z.number().int().nullable(),
    bindings: z.array(
      z.object({
        id: z.string(),
        owner: z.enum(OWNERS),
        host: z.string(),
        scheme: z.enum(INJECTION_SCHEMES),
        emit_mechanism: z.enum(EMIT_MECHANISMS),
        credential_ref: z.string(),
      }),
    ),
    why: z.array(z.string()),
  })
  .meta({ id: 'Explanation' });
export type ExplanationRecord = z.infer<typeof explanationRecord>;
