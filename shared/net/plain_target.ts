import { err, ok, type Result } from '../model/result.ts';
import type { Problem } from '../model/problem.ts';
import { parseAuthority } from './host.ts';
import { PLAIN_PORT } from './host_port.ts';

/** What a client asks a proxy for with an absolute `http://` target. */
export interface PlainTarget {
  /** Canonical. */
  readonly host: string;
  readonly port: number;
  /** The target as the host itself receives it (RFC 9112 sections 3.2.1 and 3.2.4): its bytes are those of the URL. */
  readonly origin: string;
}

/** Reads a target such as `http://deb.example/dists`; null if it is none of `http://`. */
export function parsePlainTarget(
  target: string,
  method: string,
): Result<PlainTarget, Problem<'invalid_target'>> | null {
  const parts = /^http:\/\/([^/?#]*)([^]*)$/i.exec(target);
  if (parts === null) return null;
  const authority = parseAuthority(parts[1] ?? '');
  if (!authority.ok) {
    const message = `the request target names a host that is not valid: ${authority.error.message}`;
    return err({ reason: 'invalid_target', message });
  }
  const rest = parts[2] ?? '';
  const { host, port } = authority.value;
  return ok({ host, port: port ?? PLAIN_PORT, origin: originForm(rest, method) });
}

function originForm(rest: string, method: string): string {
  if (rest === '' && method === 'OPTIONS') return '*';
  return rest.startsWith('/') ? rest : `/${rest}`;
}
