const HOST = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/;
/** A host that can be a segment of a vault path. Others are addresses in brackets, and names that begin with "_". */
const SEGMENT = /^[a-z0-9][a-z0-9._-]*$/;

/** The vault path at which `svc cert add` stores the certificate of a canonical host. No two hosts have the same. */
export function certificatePlace(host: string): string {
  const [, name = host, port] = HOST.exec(host) ?? [];
  const segments = SEGMENT.test(name) ? [name] : ['other', `x${name.replaceAll(/[[\]:]/g, '-')}`];
  if (port !== undefined) segments.push(port);
  return ['user', 'client-certificates', ...segments].join('/');
}
