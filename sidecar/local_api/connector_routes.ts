import { err, type Result } from '../../shared/model/result.ts';
import type { RunReply } from '../../shared/wire/connectors.ts';
import type { RunResult } from '../connector/run_operation.ts';
import type { RunCaller } from '../connector/run_ports.ts';
import type { Caller } from './callers.ts';
import { localError, type LocalError } from './local_error.ts';

/**
 * Runs an operation for a caller, as long as the caller waits for it. A session's run counts as one of its tunnels and ends
 * with the session.
 */
export async function runFor(
  caller: Caller,
  source: RunCaller['source'],
  left: AbortSignal,
  run: (caller: RunCaller) => Promise<RunResult>,
): Promise<Result<RunReply, LocalError>> {
  const ended = new AbortController();
  const gone = AbortSignal.any([left, ended.signal]);
  const session = caller.kind === 'session' ? caller.session : null;
  const close = session === null ? () => undefined : session.openTunnel(() => ended.abort());
  if (close === null) return err(localError('too_many_tunnels', 'This session has as many open tunnels as it may.'));
  try {
    const result = await run({ source, sessionId: session?.id ?? null, gone });
    if (result.ok) return result;
    const { reason, message, details } = result.error;
    return err(localError(reason, message, details));
  } finally {
    close();
  }
}
