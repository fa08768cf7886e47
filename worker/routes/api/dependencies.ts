import { ok } from '../../../shared/model/result.ts';
import { dependenciesReply } from '../../../shared/wire/status/dependencies.ts';
import { describeDependencies } from '../../installation/describe_dependencies.ts';
import { forUser } from '../http/operation.ts';

export const getDependencies = forUser({
  summary: 'List what the control plane depends on, and whether it works',
  description:
    'For admins. Names what the installation uses and what your enterprise configured, with the last failure. Calls none of them: only the databases are asked.',
  replies: { 200: dependenciesReply },
  async handle({ context, who }) {
    const described = await describeDependencies(context, who);
    return described.ok ? ok({ status: 200, json: { items: described.value } }) : described;
  },
});
