import { accepts } from 'hono/accepts';
import type { AppContext } from './app_env.ts';

/**
 * The coding that the client likes best of those offered, by Accept-Encoding (RFC 9110, section 12.5.3); of equals the first.
 * Null where it names none of them, or likes it better without.
 */
export function fittingCoding<Coding extends string>(c: AppContext, offered: readonly Coding[]): Coding | null {
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
