import { err, ok } from '../../../shared/model/result.ts';
import { readyReply } from '../../../shared/wire/account.ts';
import { apiError } from '../../../shared/wire/errors.ts';
import { describeReadiness } from '../../installation/readiness.ts';
import { forAnyone } from '../http/operation.ts';

export const getReady = forAnyone({
  summary: 'Check whether this program accepts calls, for a load balancer',
  description:
    'Refused with not_ready while the program stops, while the database lacks migrations, and if the program seals with a replaced master key.',
  replies: { 200: readyReply },
  async handle({ context }) {
    const ready = await describeReadiness(context);
    return ready.ok ? ok({ status: 200, json: ready.value }) : err(apiError('not_ready', ready.error));
  },
});
