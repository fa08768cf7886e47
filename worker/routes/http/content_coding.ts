import { accepts } from 'hono/accepts';
import type { AppContext } from './app_env.ts';

/**
 * The offered coding that the client prefers by Accept-Encoding (RFC 9110, section 12.5.3), the first one on a tie.
 * Null if it accepts none of them or prefers identity.
 */
export function chooseCoding<Coding extends string>(c: AppContext, offered: readonly Coding[]): Coding | null {
  const chosen = accepts(c, {
    header: 'Accept-Encoding',
    supports: [...offered],
    default: '',
    match(accepted) {
      const weights = new Map(accepted.map(({ type, q }) => [type.toLowerCase(), q]));
      const weigh = (coding: string) => weights.get(coding) ?? weights.get('*') ?? 0;
      const best = offered.toSorted((a, b) => weigh(b) - weigh(a))[0] ?? '';
      return weigh(best) > 0 && weigh(best) >= (weights.get('identity') ?? 0) ? best : '';
    },
  });
  return offered.find((coding) => coding === chosen) ?? null;
}
