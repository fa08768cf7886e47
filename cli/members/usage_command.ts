import { formatQuota, type UsedBy } from '../../shared/model/quotas/quotas.ts';
import { type UsageRecord, usageReply } from '../../shared/wire/usage.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import type { Column } from '../terminal/output.ts';

const WHOSE: Readonly<Record<UsedBy, string>> = {
  account: 'your account',
  enterprise: 'the enterprise',
  everybody: 'all of its people',
};

const COLUMNS: readonly Column<UsageRecord>[] = [
  { title: 'OF', cell: ({ of }) => WHOSE[of] },
  { title: 'WHAT', cell: ({ what }) => what },
  { title: 'USED', cell: ({ kind, used }) => formatQuota(kind, used) },
  { title: 'LIMIT', cell: ({ kind, limit }) => formatQuota(kind, limit) },
];

/** `svc enterprise usage`: what is nearest to its limit comes first. */
export async function showUsage({ context, options, print }: Call): Promise<undefined> {
  const { items } = await controlClient(context, options).call('GET', '/v1/usage', usageReply);
  const sorted = items.toSorted((one, other) => other.used / other.limit - one.used / one.limit);
  print.rows(sorted, sorted, COLUMNS, 'nothing is counted');
}
