import { isReadByEngine } from '../engine/engine_cli.ts';
import type { SandboxSession } from '../launch/launch_ports.ts';
import { mayHoldSentinel, NOT_PROXIED, proxyUrlFor } from '../launch/session_environment.ts';
import type { StepScope } from './plan_ports.ts';

/**
 * The environment of one step (specification section 1, Tool-step egress): the scope's token as the CONNECT password, the
 * session's id as the user, and no `SVC_TOKEN`. The variables that name certificates are set inside, by the helper that made
 * the bundle.
 */
export function stepEnvironment(
  stepId: string,
  session: SandboxSession,
  scope: StepScope | null,
): Record<string, string> {
  const own = { SVC_SESSION_ID: session.sessionId, SVC_STEP_ID: stepId };
  if (scope === null) return own;
  const url = proxyUrlFor(session.proxyUrl, session.sessionId, scope.token);
  const sentinels = scope.sentinels ?? session.sentinels;
  const placeholders = sentinels.filter(({ env }) => mayHoldSentinel(env) && !isReadByEngine(env));
  return {
    ...Object.fromEntries(placeholders.map(({ env, value }) => [env, value])),
    ...own,
    HTTPS_PROXY: url,
    https_proxy: url,
    HTTP_PROXY: url,
    http_proxy: url,
    NO_PROXY: NOT_PROXIED,
    no_proxy: NOT_PROXIED,
    NODE_USE_ENV_PROXY: '1',
    GIT_HTTP_PROXY_AUTHMETHOD: 'basic',
  };
}
