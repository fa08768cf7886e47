import { realpathSync } from 'node:fs';
import { sha256Hex } from '../../machine/sha256.ts';

/** The labels that identify our containers, also after a crash. */
export const SESSION_LABEL = 'svc.session';
export const HOME_LABEL = 'svc.home';

/** The value of {@link HOME_LABEL}: identifies the state directory without revealing its path. */
export function homeLabelOf(home: string): string {
  return sha256Hex(realpathSync(home)).slice(0, 16);
}

/** The labels of a session's container. */
export function containerLabels(home: string, sessionId: string): Record<string, string> {
  return { [SESSION_LABEL]: sessionId, [HOME_LABEL]: homeLabelOf(home) };
}
