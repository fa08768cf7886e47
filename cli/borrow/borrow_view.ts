import type { BorrowedItem } from '../../shared/borrow/borrow_calls.ts';
import { type BorrowedForm, type BorrowGrant, placeNameOf } from '../../shared/borrow/borrow_grant.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { commandText } from '../terminal/cell_text.ts';
import type { Paint } from '../terminal/output.ts';

/** Everything that a person decides about: what runs here, how its output is read, where the value may go, and what changed. */
export function grantView(grant: BorrowGrant, before: BorrowGrant | null, paint: Paint): string {
  const rows = [...rowsOf(grant), ...changesOf(before, grant)];
  const lines = rows.map(([name, text]) => `  ${name.padEnd(10)} ${toPrintable(text)}\n`);
  return `${paint('bold', toPrintable(`vault://${grant.path} (${grant.owner})`))}\n${lines.join('')}`;
}

type Row = readonly [string, string];

function rowsOf(grant: BorrowGrant): readonly Row[] {
  const { program, args, env, output, files, hosts, scheme, place, effect } = grant;
  const called = placeNameOf(scheme);
  const into = place === undefined || called === null ? '' : `, in the ${called} ${place}`;
  return [
    ['runs', commandText([program, ...args])],
    ...Object.entries(env).map(([name, value]): Row => ['with', `${name}=${JSON.stringify(value)}`]),
    ['reads', formText(output)],
    ...files.map(({ path, sha256 }): Row => [
      'file',
      sha256 === null ? `${path}, as the system installs and updates it` : `${path}, SHA-256 ${sha256}`,
    ]),
    ['for', `${hosts.join(', ')} with the scheme ${scheme}${into}`],
    ['effect', effect === 'read' ? 'read: only bindings that only read' : `${effect}: every binding`],
  ];
}

function changesOf(before: BorrowGrant | null, grant: BorrowGrant): readonly Row[] {
  if (before === null) return [];
  const text = ([name, value]: Row): string => `${name} ${value}`;
  const [old, now] = [rowsOf(before).map(text), rowsOf(grant).map(text)];
  return [
    ...old.filter((row) => !now.includes(row)).map((row): Row => ['changed', `- ${row}`]),
    ...now.filter((row) => !old.includes(row)).map((row): Row => ['changed', `+ ${row}`]),
  ];
}

export function formText(output: BorrowedForm): string {
  if (output.form === 'text') return 'its whole output';
  if (output.form === 'aws') return 'a key set of AWS (credential_process)';
  const until = output.expires === undefined ? '' : `, until the field ${output.expires}`;
  return `the field ${output.value} of its JSON${until}`;
}

/** What keeps a value from being there; null if nothing does. */
export function problemText({ problem, failure }: BorrowedItem): string | null {
  if (problem !== null) return problem;
  if (failure === null) return null;
  return failure.stderr === null ? failure.message : `${failure.message}: ${failure.stderr}`;
}
