import type { Command } from 'commander';
import { identitiesPage, type IdentityRecord } from '../../shared/wire/identities.ts';
import { type SidecarRecord, sidecarsPage } from '../../shared/wire/sidecars.ts';
import { type SignInRecord, signInsPage } from '../../shared/wire/sign_ins.ts';
import { controlClient } from '../clients.ts';
import { type Call, type CommandLine, handle } from '../command_line.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import type { Column } from '../terminal/output.ts';
import { agoText } from '../terminal/relative_time.ts';
import { addAccountDeletion } from './delete_account.ts';

/** `svc account ...`. */
export function addAccountCommands(line: CommandLine): void {
  const account = line.program
    .command('account')
    .description('your sidecars, sign-ins and ways to sign in; delete your account');
  addList(line, account, {
    name: 'sidecars',
    description: 'the sidecars that use your credentials',
    list: { description: 'list your sidecars on all machines, also revoked ones', run: listSidecars },
    end: {
      name: 'revoke',
      description: 'revoke a sidecar permanently, such as that of a lost machine; its agents lose your credentials',
      argument: 'its id (sdc_...)',
      path: '/v1/sidecars',
      done: 'revoked',
    },
  });
  addList(line, account, {
    name: 'sign-ins',
    description: 'the browsers and programs that are signed in as you',
    list: { description: 'list your sign-ins; * is this one', run: listSignIns },
    end: {
      name: 'end',
      description: 'sign a browser or a program out',
      argument: 'its id (bse_... or fam_...)',
      path: '/v1/sessions',
      done: 'ended',
    },
  });
  addList(line, account, {
    name: 'identities',
    description: 'your ways to sign in: accounts at providers, and a password',
    list: { description: 'list your ways to sign in; the console adds one', run: listIdentities },
    end: {
      name: 'remove',
      description: 'remove a way to sign in; the last one stays',
      argument: 'its id (idn_...)',
      path: '/v1/identities',
      done: 'removed',
    },
  });
  addAccountDeletion(line, account);
}

/** A list of things, each of which can be ended by its id. */
interface ListCommands {
  readonly name: string;
  readonly description: string;
  readonly list: { readonly description: string; readonly run: (call: Call) => Promise<undefined> };
  readonly end: {
    readonly name: string;
    readonly description: string;
    readonly argument: string;
    /** `DELETE` of an id below it ends one. */
    readonly path: string;
    readonly done: string;
  };
}

function addList(line: CommandLine, account: Command, { name, description, list, end }: ListCommands): void {
  const group = account.command(name).description(description);
  handle(line, group.command('list').alias('ls').description(list.description), list.run);
  const command = group.command(end.name).description(end.description).argument('<id>', end.argument);
  handle(line, command, async ({ context, options, print, args }) => {
    const id = args[0] ?? '';
    await controlClient(context, options).callEmpty('DELETE', `${end.path}/${encodeURIComponent(id)}`);
    print.line({ [end.done]: id }, `${end.done} ${id}`);
    return undefined;
  });
}

async function listSidecars({ context, options, print }: Call): Promise<undefined> {
  const sidecars = await fetchAllPages(controlClient(context, options), '/v1/sidecars', sidecarsPage, {});
  const now = context.now();
  const columns: readonly Column<SidecarRecord>[] = [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'NAME', cell: ({ name }) => name },
    { title: 'STATE', cell: ({ revoked_at: revoked }) => (revoked === null ? 'active' : 'revoked') },
    { title: 'LAST SEEN', cell: ({ last_seen_at: at }) => (at === null ? 'never' : agoText(at, now)) },
  ];
  print.rows(sidecars, sidecars, columns, 'no sidecars');
}

async function listSignIns({ context, options, print }: Call): Promise<undefined> {
  const signIns = await fetchAllPages(controlClient(context, options), '/v1/sessions', signInsPage, {});
  const now = context.now();
  const columns: readonly Column<SignInRecord>[] = [
    { title: '', cell: ({ current }) => (current ? '*' : '') },
    { title: 'ID', cell: ({ id }) => id },
    { title: 'KIND', cell: ({ kind }) => kind },
    { title: 'NAME', cell: ({ client }) => client },
    { title: 'LAST SEEN', cell: ({ last_seen_at: at }) => agoText(at, now) },
    { title: 'ENDS', cell: ({ expires_at: end }) => end.slice(0, 10) },
  ];
  print.rows(signIns, signIns, columns, 'no sign-ins');
}

async function listIdentities({ context, options, print }: Call): Promise<undefined> {
  const identities = await fetchAllPages(controlClient(context, options), '/v1/identities', identitiesPage, {});
  const now = context.now();
  const columns: readonly Column<IdentityRecord>[] = [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'PROVIDER', cell: ({ title }) => title },
    { title: 'ADDRESS', cell: ({ email }) => email },
    { title: 'LAST USED', cell: ({ last_used_at: at }) => agoText(at, now) },
  ];
  print.rows(identities, identities, columns, 'no ways to sign in');
}
