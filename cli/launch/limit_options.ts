import type { Command } from 'commander';
import type { RequestLimits } from '../../shared/model/host_binding.ts';
import { hasLimit, toRequestLimits } from '../../shared/model/request_limits.ts';
import type { Call } from '../command_line.ts';
import { toCount, toSize } from '../command_options.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { findOuterSession, OUTSIDE } from './outer_session.ts';

/** How many requests of a session may get a credential, and with how many bytes. */
export interface LimitOptions {
  readonly requestsPerMinute?: string;
  readonly requestsPerDay?: string;
  readonly bytesPerDay?: string;
}

/** Adds the options to a command that starts a session. */
export function addLimitOptions(command: Command): Command {
  return command
    .option(
      '--requests-per-minute <count>',
      'at most so many requests of this session get a credential in any 60 seconds, tools of MCP servers apart',
    )
    .option('--requests-per-day <count>', 'likewise in any 24 hours')
    .option(
      '--bytes-per-day <size>',
      'the most bytes of such requests and their replies in any 24 hours, such as 500MB; headers do not count',
    );
}

/** The options that were given. */
export function listLimits({ requestsPerMinute, requestsPerDay, bytesPerDay }: LimitOptions): readonly string[] {
  return [
    ...(requestsPerMinute === undefined ? [] : ['--requests-per-minute']),
    ...(requestsPerDay === undefined ? [] : ['--requests-per-day']),
    ...(bytesPerDay === undefined ? [] : ['--bytes-per-day']),
  ];
}

/**
 * Reads them; throws if one is no limit. Inside a session that has limits no other session is started: each counts for itself. This
 * stops programs that do not hide where they come from.
 */
export async function readLimits(call: Call<LimitOptions>): Promise<RequestLimits> {
  const outer = await findOuterSession(call);
  if (outer !== null && hasLimit(toRequestLimits(outer))) {
    const message =
      'this runs inside a session with a limit of requests or bytes, and another session would have a count of its own';
    throw new CliError(EXIT.notStarted, message, [OUTSIDE]);
  }
  const { options } = call;
  if (listLimits(options).length === 0) return {};
  // Loaded on use, so that a run without a limit starts faster.
  const { byteLimit, requestLimit } = await import('../../shared/wire/host_binding_fields.ts');
  const read = (option: string, limit: typeof requestLimit, value: number | string | undefined): number | undefined => {
    if (value === undefined) return undefined;
    const parsed = limit.safeParse(value);
    if (parsed.success) return parsed.data;
    throw new CliError(EXIT.notStarted, `${option} ${parsed.error.issues[0]?.message ?? 'is no number'}`);
  };
  return toRequestLimits({
    requests_per_minute: read('--requests-per-minute', requestLimit, toCount(options.requestsPerMinute)),
    requests_per_day: read('--requests-per-day', requestLimit, toCount(options.requestsPerDay)),
    bytes_per_day: read('--bytes-per-day', byteLimit, toSize(options.bytesPerDay)),
  });
}
