import { z } from 'zod';
import { healthReply } from '../../shared/wire/account.ts';
import { controlClient, sidecarClient, findRunning } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { homeOf } from './home.ts';
import { formatRows } from '../terminal/output.ts';

/** Reply of `GET /v1/health` of the sidecar's local API to the host's user. */
export const sidecarHealth = z.object({
  status: z.enum(['ok', 'starting', 'degraded']),
  version: z.string(),
  snapshot: z.object({ version: z.number(), age_seconds: z.number(), usable: z.boolean().optional() }).nullable(),
  spool: z.object({ bytes: z.number(), events: z.number(), accepting: z.boolean().optional() }),
  channel: z.object({
    state: z.string(),
    last_error: z.object({ reason: z.string(), message: z.string() }).nullable().catch(null),
  }),
  audit_log: z
    .object({
      remembers: z.boolean(),
      mismatches: z.array(
        z.object({
          writer: z.string(),
          standing: z.string(),
          remembered: z.object({ sequence: z.number(), hash: z.string() }),
          found: z.object({ sequence: z.number(), hash: z.string() }).nullable(),
          noticed_at: z.string(),
        }),
      ),
    })
    .optional(),
  /** The origin of the upstream proxy; null without one, absent from an older sidecar. */
  upstream_proxy: z.string().nullable().optional(),
  sessions: z.number(),
});
export type SidecarHealth = z.infer<typeof sidecarHealth>;
export type ControlHealth = z.infer<typeof healthReply>;

/** The answer of a program, or why there is none. */
export type Asked<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string };

/** `svc status`. */
export function addStatusCommand(line: CommandLine): void {
  handle(
    line,
    line.program.command('status').description('show what is running and whether it is healthy'),
    showStatus,
  );
}

/** Asks the control plane for its health. */
export function askControl(call: Call): Promise<Asked<ControlHealth>> {
  return askFor(() => controlClient(call.context, call.options).call('GET', '/v1/health', healthReply));
}

/** Asks the sidecar for its health. */
export function askSidecar(call: Call): Promise<Asked<SidecarHealth>> {
  return askFor(() => sidecarClient(call.context, call.options).call('GET', '/v1/health', sidecarHealth));
}

async function askFor<T>(ask: () => Promise<T>): Promise<Asked<T>> {
  try {
    return { ok: true, value: await ask() };
  } catch (error) {
    if (!(error instanceof CliError) || error.exitCode === EXIT.usage) throw error;
    return { ok: false, problem: error.message };
  }
}

async function showStatus(call: Call): Promise<number> {
  const home = homeOf(call.context, call.options);
  const running = findRunning(home);
  const [control, sidecar] = await Promise.all([askControl(call), askSidecar(call)]);
  const value = {
    home,
    svc_version: call.context.version,
    run: running,
    control: control.ok ? control.value : { status: 'unreachable', problem: control.problem },
    sidecar: sidecar.ok ? sidecar.value : { status: 'unreachable', problem: sidecar.problem },
  };
  const rows = [
    ['svc', call.context.version],
    ['state', home],
    ['control plane', control.ok ? controlText(control.value, running?.control_url) : control.problem],
    [
      'sidecar',
      sidecar.ok
        ? `${sidecar.value.status}, ${running?.proxy_url ?? ''}, version ${sidecar.value.version}`
        : sidecar.problem,
    ],
    ...(sidecar.ok ? sidecarRows(sidecar.value) : []),
  ];
  const columns = [0, 1].map((at) => ({ title: '', cell: (row: readonly string[]) => row[at] ?? '' }));
  const target = { table: call.print.person, paint: call.print.paint, empty: '' };
  call.print.data(value, () => formatRows(rows, columns, target));
  if (!control.ok || !sidecar.ok) return EXIT.unreachable;
  return control.value.status === 'ok' && sidecar.value.status === 'ok' ? EXIT.ok : EXIT.failed;
}

function controlText(health: ControlHealth, url: string | undefined): string {
  return `${health.status}, ${url ?? ''}, version ${health.version}, ${health.mode}`;
}

function sidecarRows(health: SidecarHealth): string[][] {
  const { snapshot, spool, channel, sessions } = health;
  const mismatches = health.audit_log?.mismatches.length ?? 0;
  const error = channel.last_error === null ? '' : ` (${channel.last_error.message})`;
  return [
    ['channel', channel.state + (channel.state === 'up' ? '' : error)],
    ['policy', snapshot === null ? 'none yet' : `version ${snapshot.version}, ${snapshot.age_seconds} s old`],
    ['audit spool', `${spool.events} events waiting, ${spool.bytes} bytes`],
    ...(mismatches === 0 ? [] : [['audit log', `${mismatches} chains were rolled back: see svc doctor`]]),
    ['sessions', String(sessions)],
  ];
}
