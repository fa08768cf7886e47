import { type BorrowedItem, borrowedList } from '../../shared/borrow/borrow_calls.ts';
import { sidecarClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';
import type { Finding } from '../up/finding.ts';
import { problemText } from './borrow_view.ts';

const CHECK = 'borrowed secrets';

/** Reports consents to borrowed secrets that give no value. No program is run. */
export async function borrowFindings(call: Call): Promise<readonly Finding[]> {
  const client = sidecarClient(call.context, call.options);
  try {
    const { items } = await client.call('GET', '/v1/borrowed-secrets', borrowedList);
    return findBorrowProblems(items);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    const fix = 'restart svc, if its sidecar is of an earlier version; see svc logs';
    return [{ check: CHECK, level: 'warning', text: `not known: ${error.message}`, fix }];
  }
}

export function findBorrowProblems(items: readonly BorrowedItem[]): readonly Finding[] {
  const check = CHECK;
  if (items.length === 0) return [];
  const bad = items.flatMap((item): Finding[] => {
    const text = problemText(item);
    if (text === null) return [];
    const fix =
      item.problem === null
        ? `svc secret borrow test ${item.grant.path}`
        : `look at what has changed, and consent to it again: svc secret borrow show ${item.grant.path}`;
    return [{ check, level: 'problem', text: `vault://${item.grant.path}: ${text}`, fix }];
  });
  return bad.length > 0 ? bad : [{ check, level: 'ok', text: `${items.length} of this machine, none with a problem` }];
}
