import { z } from 'zod';
import { QUOTA_KINDS, USED_BY } from '../model/quotas/quotas.ts';

/** How much of one kind is kept, and may be kept. */
export const usageRecord = z
  .object({
    kind: z.enum(QUOTA_KINDS),
    /** `account`: your own; `enterprise`: what the enterprise itself owns; `everybody`: of the enterprise and its people together. */
    of: z.enum(USED_BY),
    what: z.string(),
    unit: z.enum(['count', 'bytes']),
    used: z.number().int(),
    limit: z.number().int(),
  })
  .meta({ id: 'Usage' });
export type UsageRecord = z.infer<typeof usageRecord>;

/** `GET /v1/usage`. */
export const usageReply = z.object({ items: z.array(usageRecord) }).meta({ id: 'UsageList' });
