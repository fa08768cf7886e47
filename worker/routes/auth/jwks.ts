import { ok } from '../../../shared/model/result.ts';
import { keySet } from '../../../shared/wire/tokens.ts';
import { forAnyone } from '../http/operation.ts';

/** How long clients may cache the keys. */
const KEEP_SECONDS = 60;

export const getKeySet = forAnyone({
  summary: 'Get the keys that verify access tokens',
  replies: { 200: keySet },
  async handle({ context }) {
    const keys = await context.accessKeys.listPublished(context.database);
    return ok({ status: 200, json: { keys }, headers: { 'cache-control': `max-age=${KEEP_SECONDS}` } });
  },
});
