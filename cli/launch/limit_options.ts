import type { Command } from 'commander';
import type { RequestLimits } from '../../shared/model/host_binding.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { findOuterSession, OUTSIDE } from './outer_session.ts';

/** How many requests of a session may get a credential. */
export interface LimitOptions {
  readonly requestsPerMinute?: string;
  readonly requestsPerDay?: string;
}

/** The fields of `POST /v1/sandbox-proxy/sessions`. An older sidecar refuses them, and does not run the session without its limit. */
export function limitFields({ requestsPerMinute: minute, requestsPerDay: day }: RequestLimits = {}): object {
  return {
    ...(minute !== undefined && { requests_per_minute: minute }),
    ...(day !== undefined && { requests_per_day: day }),
  };
}

/** Adds the options to a command that starts a session. */
export function addLimitOptions(command: Command): Command {
  return command
    .option(
      '--requests-per-minute <count>',
      'at most so many requests of this session get a credential in any 60 seconds, tools of MCP servers apart',
    )
    .option('--requests-per-day <count>', 'likewise in any 24 hours');
}

/** The options that were given. */
export function listLimits({ requestsPerMinute, requestsPerDay }: LimitOptions): readonly string[] {
  return [
    ...(requestsPerMinute === undefined ? [] : ['--requests-per-minute']),
    ...(requestsPerDay === undefined ? [] : ['--requests-per-day']),
  ];
}

/**
 * Reads them; throws if one is no limit. Inside a session that has limits no other session is started: each counts for itself. This
 * stops programs that do not hide where they come from.
 */
export async function readLimits(call: Call<LimitOptions>): Promise<RequestLimits> {
  const outer = await findOuterSession(call);
  if (typeof (outer?.requests_per_minute ?? outer?.requests_per_day) === 'number') {
    const message =
      'this runs inside a session with a limit of requests, and another session would have a count of its own';
    throw new CliError(EXIT.notStarted, message, [OUTSIDE]);
  }
  const { options } = call;
  if (listLimits(options).length === 0) return {};
  // Loaded on use, so that a run without a limit starts faster.
  const { requestLimit } = await import('../../shared/wire/host_binding_fields.ts');
  const read = (option: string, text: string | undefined): number | undefined => {
    if (text === undefined) return undefined;
    const parsed = requestLimit.safeParse(/^\d+$/.test(text) ? Number(text) : text);
    if (parsed.success) return parsed.data;
    throw new CliError(EXIT.notStarted, `${option} ${parsed.error.issues[0]?.message ?? 'is no number'}`);
  };
  const minute = read('--requests-per-minute', options.requestsPerMinute);
  const day = read('--requests-per-day', options.requestsPerDay);
  return {
    ...(minute !== undefined && { requestsPerMinute: minute }),
    ...(day !== undefined && { requestsPerDay: day }),
  };
}
