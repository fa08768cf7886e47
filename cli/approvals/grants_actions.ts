import { type GrantRecord, grantsPage } from '../../shared/wire/approval_grants.ts';
import { approvalTarget } from '../../shared/wire/approvals.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import type { Column } from '../terminal/output.ts';

export interface GrantListOptions {
  readonly all?: boolean;
}

const COLUMNS: readonly Column<GrantRecord>[] = [
  { title: 'ID', cell: (row) => row.id },
  { title: 'STATE', cell: (row) => row.state, style: (row) => (row.state === 'open' ? 'yellow' : 'dim') },
  { title: 'ENDS', cell: (row) => row.ends_at },
  { title: 'USED', cell: (row) => (row.times === null ? String(row.used) : `${row.used} of ${row.times}`) },
  { title: 'BY', cell: (row) => row.given_by.join(', ') },
  { title: 'OPERATION', cell: approvalTarget },
  { title: 'SESSION', cell: (row) => row.session_name ?? row.session_id ?? row.sidecar_id ?? '-' },
  { title: 'REQUEST', cell: (row) => row.summary },
];

/** `svc approvals grants`: what is allowed in advance. */
export async function listGrants({ context, options, print }: Call<GrantListOptions>): Promise<undefined> {
  const found = await fetchAllPages(controlClient(context, options), '/v1/approval-grants', grantsPage, {});
  const items = options.all === true ? found : found.filter(({ state }) => state === 'open');
  print.rows({ items }, items, COLUMNS, 'Nothing is allowed in advance.');
}

/** `svc approvals grants revoke ID`. */
export async function revokeGrant({ context, options, args, print }: Call): Promise<undefined> {
  const id = args[0] ?? '';
  await controlClient(context, options).callEmpty('DELETE', `/v1/approval-grants/${encodeURIComponent(id)}`);
  print.data({ id, revoked: true }, () => `revoked ${id}: the next request asks again\n`);
}
