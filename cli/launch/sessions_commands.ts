import { z } from 'zod';
import { engineRuntime } from '../../sandbox/engine/docker_runtime.ts';
import { openEngine } from '../../sandbox/engine/open_engine.ts';
import type { ContainerRuntime } from '../../sandbox/engine/container_runtime.ts';
import { exitStatusOf, superviseChild, type SignalSource } from '../../sandbox/engine/run_child.ts';
import { sidecarClient } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { formatRows } from '../terminal/output.ts';
import { agoText } from '../terminal/relative_time.ts';
import { printEndHints } from './end_hints.ts';
import { endSession, listSessions, sessionRecord, SESSIONS_PATH, type SessionRecord } from './session_list.ts';

/** `svc sessions list|show|stop|resume|logs`. */
export function addSessionsCommands(line: CommandLine, signals: SignalSource): void {
  const sessions = line.program
    .command('sessions')
    .description('list and control the sessions of `svc run` and `svc launch`');
  handle(line, sessions.command('list').description('list live sessions and ended launches'), list);
  const one = 'id or name';
  const show = sessions
    .command('show')
    .description('show a session: its unsealed credentials, and what it was refused');
  handle(line, show.argument('<session>', one), showOne);
  const stop = sessions.command('stop').description('end a session and remove its container');
  handle(line, stop.argument('<session>', one), stopOne);
  const resume = sessions
    .command('resume')
    .description('resume the paused bindings of a session (see SVC_MAX_MASKED_REPLIES)');
  handle(line, resume.argument('<session>', one), resumeOne);
  const logs = sessions
    .command('logs')
    .description("show the output of a session's container")
    .argument('<session>', one)
    .option('--follow', 'follow the output until the container ends');
  handle<LogsOptions>(line, logs, (call) => showLogs(call, signals));
}

interface LogsOptions {
  readonly follow?: boolean;
}

async function list(call: Call): Promise<undefined> {
  const items = await listSessions(call);
  const columns = [
    { title: 'SESSION', cell: (row: SessionRecord) => row.session_id },
    { title: 'NAME', cell: (row: SessionRecord) => row.name ?? '' },
    { title: 'STATE', cell: (row: SessionRecord) => row.state },
    { title: 'SANDBOX', cell: (row: SessionRecord) => sandboxText(row) },
    { title: 'EGRESS', cell: (row: SessionRecord) => egressOf(row) ?? '' },
    { title: 'TUNNELS', cell: (row: SessionRecord) => String(row.open_tunnels) },
    { title: 'CREATED', cell: (row: SessionRecord) => agoText(row.created_at, call.context.now()) },
  ];
  call.print.rows({ items }, items, columns, 'No sessions: svc launch -- COMMAND or svc run -- COMMAND starts one.');
}

function sandboxText({ sandbox: box, host_sandbox: onHost }: SessionRecord): string {
  return box ? `${box.mode} ${box.image}` : (onHost?.mode ?? 'none');
}

/** What its sandbox lets out; undefined for a session without one. */
function egressOf({ sandbox: box, host_sandbox: onHost }: SessionRecord): string | undefined {
  return box?.egress ?? onHost?.egress;
}

async function showOne(call: Call): Promise<undefined> {
  const { session_id: id } = await find(call);
  const session = await sidecarClient(call.context, call.options).call('GET', `${SESSIONS_PATH}/${id}`, sessionRecord);
  const columns = [0, 1].map((at) => ({ title: '', cell: (row: readonly string[]) => row[at] ?? '' }));
  const target = { table: call.print.person, paint: call.print.paint, empty: '' };
  call.print.data(session, () => formatRows(factsOf(session), columns, target));
  await printHints(call, session);
}

/** A detached launch has nobody at its end, so its hints are here. JSON is for programs, which read the audit log. */
async function printHints(call: Call, { session_id: sessionId, allowed_hosts: allowed }: SessionRecord): Promise<void> {
  if (call.options.json === true) return;
  await printEndHints(call, { sessionId, expectedHosts: allowed ?? [] });
}

function factsOf(session: SessionRecord): string[][] {
  const { sandbox: box, owner_alive: ownerAlive } = session;
  const unsealed = box?.unsealed ?? [];
  const egress = egressOf(session);
  return [
    ['session', session.session_id],
    ['name', session.name ?? 'none'],
    ['state', session.state],
    ['created', session.created_at],
    ['expires', session.renews ? 'when its launcher ends' : session.expires_at],
    ['open tunnels', String(session.open_tunnels)],
    ['sandbox', sandboxText(session)],
    ...(box ? [['container', box.container_id ?? 'none yet']] : []),
    ...(egress === undefined ? [] : [['egress', egress]]),
    ...(ownerAlive === null || ownerAlive === undefined ? [] : [['its launcher', ownerAlive ? 'runs' : 'is gone']]),
    ...(Array.isArray(session.allowed_hosts)
      ? [['reaches', ['bound hosts', ...session.allowed_hosts].join(', ')]]
      : []),
    ...session.used_secrets.map(({ reference, by, from }) => [
      'uses',
      `${reference} where a host has several, chosen by ${chooserText(by, from)}`,
    ]),
    ...(session.every_mcp_server ? [['MCP servers', "every one, through svc's gateway"]] : []),
    ...session.mcp_servers.map(({ id, name }) => ['MCP server', `${name ?? 'deleted'} (${id})`]),
    ...session.masked_replies.map(({ host, count, paused }) => [
      'masked',
      `${count} replies from ${host} contained its credential${paused ? ': paused; `svc sessions resume` resumes it' : ''}`,
    ]),
    ...(unsealed.length === 0 ? [['unsealed', 'no credential']] : []),
    ...unsealed.map(({ env, reference, host, reason }) => [
      'unsealed',
      `${env} holds ${reference} for ${host}: ${reason}`,
    ]),
  ];
}

function chooserText(by: string, from: string | null): string {
  if (by === 'option') return '--use';
  return `the ${by} ${from ?? ''}`.trim();
}

async function stopOne(call: Call): Promise<undefined> {
  const session = await find(call);
  await endSession(call, session.session_id);
  call.print.note(`stopped ${session.session_id}`);
  await printHints(call, session);
}

async function resumeOne(call: Call): Promise<undefined> {
  const { session_id: id } = await find(call);
  const answer = z.object({ resumed: z.array(z.string()) });
  const { resumed } = await sidecarClient(call.context, call.options).call(
    'POST',
    `${SESSIONS_PATH}/${id}/resume`,
    answer,
  );
  const text = resumed.length === 0 ? `nothing is paused in ${id}` : `resumed in ${id}: ${resumed.join(', ')}`;
  call.print.data({ resumed }, () => text);
}

async function showLogs(call: Call<LogsOptions>, signals: SignalSource): Promise<number> {
  const session = await find(call);
  const containerId = session.sandbox?.container_id ?? null;
  if (containerId === null) {
    throw new CliError(EXIT.failed, `session ${session.session_id} has no container, so its output was not kept`);
  }
  const runtime = await runtimeOf(call, session);
  const child = runtime.logs(containerId, { follow: call.options.follow === true });
  return exitStatusOf(await superviseChild(child, signals, (name) => child.kill(name)));
}

async function runtimeOf(call: Call, { sandbox: box }: SessionRecord): Promise<ContainerRuntime> {
  if (box?.runtime !== undefined) return engineRuntime(call.context.env, box.runtime.endpoint);
  const opened = await openEngine(call.context.env);
  if (opened.ok) return opened.value;
  throw new CliError(EXIT.failed, opened.error.message, opened.error.fixes);
}

/** Finds a session by its id or by a unique name. */
async function find(call: Call): Promise<SessionRecord> {
  const [wanted = ''] = call.args;
  const items = await listSessions(call);
  const byId = items.find((item) => item.session_id === wanted);
  if (byId !== undefined) return byId;
  const [first, ...others] = items.filter((item) => item.name === wanted);
  const shown = JSON.stringify(wanted);
  if (first === undefined) {
    throw new CliError(EXIT.failed, `there is no session ${shown}`, ['`svc sessions list` shows them.']);
  }
  if (others.length === 0) return first;
  throw new CliError(EXIT.failed, `${others.length + 1} sessions are named ${shown}`, [
    `Use the id: ${[first, ...others].map((item) => item.session_id).join(', ')}`,
  ]);
}
