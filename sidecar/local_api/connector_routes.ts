import { err, ok, type Result } from '../../shared/model/result.ts';
import type { RunReply } from '../../shared/wire/connectors/connectors.ts';
import type { RunResult } from '../connector/operation_runner.ts';
import type { RunCaller } from '../connector/run_ports.ts';
import type { Sessions } from '../session/sessions.ts';
import type { Caller } from './callers.ts';
import { localError, type LocalError, noSessionError } from './local_error.ts';

/** The session of a run. Only the host token may run for another session, and only for a live one. */
export function resolveActingCaller(
  caller: Caller,
  sessionId: string | undefined,
  sessions: Pick<Sessions, 'get'>,
): Result<Caller, LocalError> {
  if (sessionId === undefined) return ok(caller);
  if (caller.kind !== 'host') return err(localError('host_token_required', "A session's token may not do this."));
  const session = sessions.get(sessionId);
  return session === null ? err(noSessionError(sessionId)) : ok({ kind: 'session', session });
}

/** Runs an operation for a caller until the caller disconnects. A session's run counts as one of its tunnels and ends with the session. */
export async function runFor(
  caller: Caller,
  source: RunCaller['source'],
  left: AbortSignal,
  run: (caller: RunCaller) => Promise<RunResult>,
): Promise<Result<RunReply, LocalError>> {
  return whileCallerLives(caller, left, async (gone) => {
    const session = caller.kind === 'session' ? caller.session : null;
    const { id: sessionId = null, choice = null } = session ?? {};
    const result = await run({ source, sessionId, choice, signal: gone });
    if (result.ok) return result;
    const { reason, message, details } = result.error;
    return err(localError(reason, message, details));
  });
}

/** The same for a list that the caller waits for. */
export function listFor<T>(
  caller: Caller,
  left: AbortSignal,
  list: (gone: AbortSignal) => Promise<Result<T, LocalError>>,
): Promise<Result<T, LocalError>> {
  return whileCallerLives(caller, left, async (gone) => {
    const result = await list(gone);
    return caller.kind === 'session' && caller.session.ended ? err(noSessionError(caller.session.id)) : result;
  });
}

async function whileCallerLives<T>(
  caller: Caller,
  left: AbortSignal,
  act: (gone: AbortSignal) => Promise<Result<T, LocalError>>,
): Promise<Result<T, LocalError>> {
  const ended = new AbortController();
  const session = caller.kind === 'session' ? caller.session : null;
  const close = session === null ? () => undefined : session.openTunnel(() => ended.abort());
  if (close === null) return err(localError('too_many_tunnels', 'This session has reached its limit of open tunnels.'));
  try {
    return await act(AbortSignal.any([left, ended.signal]));
  } finally {
    close();
  }
}
