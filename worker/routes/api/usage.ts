import { ok } from '../../../shared/model/result.ts';
import { usageReply } from '../../../shared/wire/usage.ts';
import { listUsage } from '../../services/people/usage.ts';
import { forUser } from '../http/operation.ts';

export const getUsage = forUser({
  summary: 'List how much you keep, and may keep',
  description:
    'For admins also what the enterprise owns, and what all of its people keep together. What would be too much is refused with limit_reached.',
  replies: { 200: usageReply },
  async handle({ context, who }) {
    return ok({ status: 200, json: { items: await listUsage(context, who) } });
  },
});
