import type { Command } from 'commander';
import {
  auditSinkRecord,
  type AuditSinkRecord,
  auditSinksReply,
  createdAuditSink,
  type DeadLetter,
  deadLettersPage,
  replayReply,
  rotatedSinkSecret,
} from '../../shared/wire/audit_sinks.ts';
import { controlClient } from '../clients.ts';
import { type Call, type CommandLine, handle } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { findGroup } from '../members/group_commands.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import type { Column } from '../terminal/output.ts';
import { readSecret } from '../terminal/read_secret.ts';

interface AddOptions {
  readonly kind: string;
  readonly urlStdin?: boolean;
  readonly type?: string;
  readonly fromBeginning?: boolean;
  readonly header?: string;
  readonly headerFile?: string;
  readonly plainClose?: boolean;
  readonly region?: string;
  readonly accessKeyId?: string;
  readonly secretKeyFile?: string;
  readonly toRole?: string;
  readonly toGroup?: string;
}

/** `svc audit sink ...`. */
export function addSinkCommands(line: CommandLine, audit: Command): void {
  const sink = audit.command('sink').description('send audit events to receivers of your enterprise, such as a SIEM');
  const add = sink
    .command('add')
    .description('add a receiver: events are sent in order, at least once, within about a minute')
    .argument('<name>', 'what receives them, such as siem')
    .argument('[url]', 'its URL; leave it out with --url-stdin')
    .option(
      '--kind <kind>',
      'webhook (signed, Standard Webhooks), otlp, otlp_metrics or otlp_traces (OpenTelemetry, JSON over HTTP), syslog (RFC 5424 over TLS), s3 (JSON lines in a bucket), or slack or mail (messages about approvals)',
      'webhook',
    )
    .option('--url-stdin', 'read the URL from stdin, if it is a secret, as that of an incoming webhook is')
    .option('--type <type>', 'only these events: types, or prefixes that end in "." (separate several with ",")')
    .option('--from-beginning', 'start with the oldest stored event, not with the next one')
    .option('--header <name>', 'with the kinds of OpenTelemetry: a header that authenticates, such as authorization')
    .option('--header-file <file>', 'the file with its value; without it you are asked, and it is not shown')
    .option('--plain-close', 'with --kind syslog: the receiver closes without TLS, as rsyslog with GnuTLS does')
    .option('--region <region>', 'with --kind s3: the region of the bucket')
    .option('--access-key-id <id>', 'with --kind s3: the access key; its secret is asked for, and not shown')
    .option('--to-role <role>', 'with --kind mail: to members with this role or one with more rights')
    .option('--to-group <group>', 'with --kind mail: to the members of this group: its id (grp_...) or its name')
    .option('--secret-key-file <file>', 'with --kind s3: the file with the secret access key');
  handle<AddOptions>(line, add, addSink);
  handle(line, sink.command('list').alias('ls').description('list receivers, and how sending goes'), listSinks);
  byId(line, sink, 'remove', 'stop sending to a receiver; its dead letters are deleted', removeSink);
  byId(line, sink, 'rotate', 'make a new signing secret; the one before signs too for a day', rotateSecret);
  byId(line, sink, 'enable', 'go on where a disabled receiver stopped, at once', enableSink);
  byId(line, sink, 'dead-letters', 'list the events that a receiver refused', listDeadLetters);
  byId(line, sink, 'replay', 'send the events that a receiver refused again', replaySink);
}

type Action = (call: Call) => Promise<undefined>;

function byId(line: CommandLine, sink: Command, name: string, description: string, action: Action): void {
  handle(line, sink.command(name).description(description).argument('<id>', 'its id (snk_...)'), action);
}

function pathOf({ args }: Call, rest = ''): string {
  return `/v1/audit-sinks/${encodeURIComponent(args[0] ?? '')}${rest}`;
}

async function addSink(call: Call<AddOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const url = await urlOf(call);
  const { kind, type, header, headerFile } = options;
  if (headerFile !== undefined && header === undefined) {
    throw new CliError(
      EXIT.usage,
      '--header-file has no header: name it with --header, such as --header authorization',
    );
  }
  const file = headerFile === undefined ? {} : { file: headerFile };
  const body = {
    kind,
    name: call.args[0] ?? '',
    ...(url !== undefined && { url }),
    ...(await receiverFields(call)),
    ...(type !== undefined && { types: type.split(',').map((each) => each.trim()) }),
    ...(options.fromBeginning === true && { from: 'beginning' }),
    ...(header !== undefined && { header: { name: header.toLowerCase(), value: await readSecret(context, file) } }),
    ...(options.plainClose === true && { accepts_plain_close: true }),
    ...(await bucketFields(call)),
  };
  const created = await controlClient(context, options).call('POST', '/v1/audit-sinks', createdAuditSink, { body });
  const { id, host, signing_secret: secret } = created;
  if (!print.json) {
    print.note(`${id} sends to ${host}.`);
    if (secret !== null) print.note('The receiver checks signatures with this secret; it is shown only once:');
  }
  print.line(created, secret ?? id);
}

/** What only mail has. */
async function receiverFields({ context, options }: Call<AddOptions>): Promise<Readonly<Record<string, string>>> {
  const { toRole, toGroup } = options;
  const group = toGroup === undefined ? null : await findGroup(controlClient(context, options), toGroup);
  return { ...(toRole !== undefined && { role: toRole }), ...(group !== null && { group_id: group.id }) };
}

/** What only a bucket has. The API says what is missing, or is not for another kind. */
async function bucketFields({ context, options }: Call<AddOptions>): Promise<Readonly<Record<string, string>>> {
  const { region, accessKeyId, secretKeyFile: file } = options;
  if (region === undefined && accessKeyId === undefined && file === undefined) return {};
  if (region === undefined || accessKeyId === undefined) {
    throw new CliError(EXIT.usage, 'a bucket needs --region and --access-key-id');
  }
  const secret = await readSecret(context, file === undefined ? {} : { file });
  return { region, access_key_id: accessKeyId, secret_access_key: secret };
}

/** Undefined for mail, which goes to members. */
async function urlOf({ args, context, options }: Call<AddOptions>): Promise<string | undefined> {
  const [, url] = args;
  const fromStdin = options.urlStdin === true;
  if (options.kind === 'mail') {
    if (url === undefined && !fromStdin) return undefined;
    throw new CliError(EXIT.usage, 'mail has no URL: it goes to the members of --to-role or --to-group');
  }
  if ((url === undefined) !== fromStdin) {
    throw new CliError(EXIT.usage, 'give one URL: as an argument, or with --url-stdin if it contains a password');
  }
  return url ?? (await readSecret(context, { stdin: true })).trim();
}

async function listSinks({ context, options, print }: Call): Promise<undefined> {
  const { items } = await controlClient(context, options).call('GET', '/v1/audit-sinks', auditSinksReply);
  const columns: readonly Column<AuditSinkRecord>[] = [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'NAME', cell: ({ name }) => name },
    { title: 'KIND', cell: ({ kind }) => kind },
    { title: 'HOST', cell: ({ host }) => host },
    { title: 'STATE', cell: stateOf },
    { title: 'DEAD LETTERS', cell: ({ dead_letters: dead }) => String(dead) },
  ];
  print.rows(items, items, columns, 'no sinks: add one with "svc audit sink add NAME URL"');
}

function stateOf({ disabled_reason: reason, failures, problem, behind }: AuditSinkRecord): string {
  if (reason !== null) return `disabled (${reason}: ${problem ?? '-'})`;
  if (failures > 0) return `failing (${problem ?? '-'})`;
  return behind ? 'sending' : 'up to date';
}

async function removeSink(call: Call): Promise<undefined> {
  await controlClient(call.context, call.options).callEmpty('DELETE', pathOf(call));
  const id = call.args[0] ?? '';
  call.print.line({ removed: id }, `removed ${id}`);
}

async function rotateSecret(call: Call): Promise<undefined> {
  const { context, options, print } = call;
  const rotated = await controlClient(context, options).call('POST', pathOf(call, '/rotate'), rotatedSinkSecret);
  if (!print.json) print.note(`Shown only once; the secret before it signs too until ${rotated.previous_until}:`);
  print.line(rotated, rotated.signing_secret);
}

async function enableSink(call: Call): Promise<undefined> {
  const { context, options, print } = call;
  const sink = await controlClient(context, options).call('POST', pathOf(call, '/enable'), auditSinkRecord);
  print.line(sink, `${sink.id} goes on with the next events`);
}

async function listDeadLetters(call: Call): Promise<undefined> {
  const { context, options, print } = call;
  const letters = await fetchAllPages(
    controlClient(context, options),
    pathOf(call, '/dead-letters'),
    deadLettersPage,
    {},
  );
  const columns: readonly Column<DeadLetter>[] = [
    { title: 'EVENT', cell: ({ event_id: id }) => id },
    { title: 'PROBLEM', cell: ({ problem }) => problem },
    { title: 'FOR', cell: ({ recipients }) => recipients?.join(' ') ?? 'everybody' },
    { title: 'REFUSED', cell: ({ failed_at: at }) => at },
    { title: 'TRIES', cell: ({ attempts }) => String(attempts) },
    { title: 'STATE', cell: ({ waiting }) => (waiting ? 'is sent again' : 'kept') },
  ];
  print.rows(letters, letters, columns, 'no dead letters');
}

async function replaySink(call: Call): Promise<undefined> {
  const { context, options, print } = call;
  const replayed = await controlClient(context, options).call('POST', pathOf(call, '/replay'), replayReply);
  print.line(replayed, `sent again with the next delivery: ${replayed.waiting}`);
}
