import type { z } from 'zod';
import type { healthReply } from '../../shared/wire/account.ts';
import { controlClient, sidecarClient, findRunning } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import {
  isFiniteNumber,
  isFlag,
  isListOf,
  isObjectOf,
  isOneOf,
  isText,
  orMissing,
  orNull,
  readFields,
  replyOf,
} from '../read_fields.ts';
import { homeOf } from './home.ts';
import { formatRows } from '../terminal/output.ts';
import { counted } from '../../shared/model/sentence.ts';

/** Reply of `GET /v1/health` of the sidecar's local API to the host's user. */
export interface SidecarHealth {
  readonly status: 'ok' | 'starting' | 'degraded';
  readonly version: string;
  readonly snapshot: {
    readonly version: number;
    readonly age_seconds: number;
    readonly usable?: boolean | undefined;
  } | null;
  readonly spool: { readonly bytes: number; readonly events: number; readonly accepting?: boolean | undefined };
  readonly channel: { readonly state: string; readonly last_error: ChannelError | null };
  readonly audit_log?: AuditLogHealth | undefined;
  /** The origin of the upstream proxy; null without one, absent from an older sidecar. */
  readonly upstream_proxy?: string | null | undefined;
  readonly sessions: number;
}

interface ChannelError {
  readonly reason: string;
  readonly message: string;
}

interface AuditLogHealth {
  readonly remembers: boolean;
  readonly mismatches: readonly {
    readonly writer: string;
    readonly standing: string;
    readonly remembered: AuditHead;
    readonly found: AuditHead | null;
    readonly noticed_at: string;
  }[];
}

interface AuditHead {
  readonly sequence: number;
  readonly hash: string;
}

export type ControlHealth = z.infer<typeof healthReply>;

const controlHealth = replyOf<ControlHealth>({
  status: isOneOf(['ok', 'unavailable']),
  version: isText,
  time: isText,
  mode: isOneOf(['local', 'hosted']),
});

const isHead = isObjectOf<AuditHead>({ sequence: isFiniteNumber, hash: isText });
/** Its last error may have another form in another version. */
const isChannel = isObjectOf({ state: isText, last_error: (_value: unknown): _value is unknown => true });

const sidecarHealth = replyOf<Omit<SidecarHealth, 'channel'> & { channel: { state: string; last_error: unknown } }>({
  status: isOneOf(['ok', 'starting', 'degraded']),
  version: isText,
  snapshot: orNull(isObjectOf({ version: isFiniteNumber, age_seconds: isFiniteNumber, usable: orMissing(isFlag) })),
  spool: isObjectOf({ bytes: isFiniteNumber, events: isFiniteNumber, accepting: orMissing(isFlag) }),
  channel: isChannel,
  audit_log: orMissing(
    isObjectOf<AuditLogHealth>({
      remembers: isFlag,
      mismatches: isListOf(
        isObjectOf({ writer: isText, standing: isText, remembered: isHead, found: orNull(isHead), noticed_at: isText }),
      ),
    }),
  ),
  upstream_proxy: orMissing(orNull(isText)),
  sessions: isFiniteNumber,
});

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
  return askFor(() => controlClient(call.context, call.options).call('GET', '/v1/health', controlHealth));
}

/** Asks the sidecar for its health. */
export function askSidecar(call: Call): Promise<Asked<SidecarHealth>> {
  return askFor(() => fetchSidecarHealth(call));
}

/** As {@link askSidecar}; throws a CliError if there is no answer. */
export async function fetchSidecarHealth(call: Call): Promise<SidecarHealth> {
  const { channel, ...health } = await sidecarClient(call.context, call.options).call(
    'GET',
    '/v1/health',
    sidecarHealth,
  );
  const lastError = readFields<ChannelError>(channel.last_error, { reason: isText, message: isText });
  return { ...health, channel: { state: channel.state, last_error: lastError } };
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
    ['audit spool', `${counted(spool.events, 'event')} waiting, ${counted(spool.bytes, 'byte')}`],
    ...(mismatches === 0
      ? []
      : [
          [
            'audit log',
            `${mismatches === 1 ? '1 chain was' : `${mismatches} chains were`} rolled back: see svc doctor`,
          ],
        ]),
    ['sessions', String(sessions)],
  ];
}
