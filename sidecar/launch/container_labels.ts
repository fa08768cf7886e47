import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';

/** The labels by which a container is known to be ours, also after a crash. */
export const SESSION_LABEL = 'svc.session';
export const HOME_LABEL = 'svc.home';

/** The value of {@link HOME_LABEL}: tells containers of one state directory from another's without naming it. */
export function homeLabelOf(home: string): string {
  return createHash('sha256').update(realpathSync(home)).digest('hex').slice(0, 16);
}

/** The labels of a session's container. */
export function containerLabels(home: string, sessionId: string): Record<string, string> {
  return { [SESSION_LABEL]: sessionId, [HOME_LABEL]: homeLabelOf(home) };
}
