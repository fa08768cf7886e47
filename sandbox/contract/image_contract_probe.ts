import type { ImageConfig } from '../engine/container_runtime.ts';

/** The output of an image's probe: facts from the helpers' check, and missing parts. */
export interface ProbeReport {
  readonly facts: ReadonlyMap<string, string>;
  /** Missing parts, such as `svc-run-with-proxy-ca`. */
  readonly missing: readonly string[];
  /** Exit code and output of the helpers' check; null if it could not run. */
  readonly check: { readonly exitCode: number; readonly said: string } | null;
}

/** Version of the contract between launcher and image. */
export const CONTRACT_VERSION = '1';
/** An optional program of an image: MCP over stdin and stdout, for clients in the container. */
export const MCP_HELPER = 'svc-mcp';
export const HELPERS = ['svc-install-proxy-ca', 'svc-run-with-proxy-ca', 'svc-run-step'] as const;
const DEFAULT_AGENT_USER = 'agent';

/** The user that commands run as: the image's own, unless that is root. */
export function agentUserOf(image: Pick<ImageConfig, 'user'>): string {
  const [user = ''] = image.user.split(':');
  return user === '' || user === 'root' || user === '0' ? DEFAULT_AGENT_USER : user;
}

/** A name that is safe in a shell script. */
export function isPlainUserName(user: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/.test(user);
}

/**
 * The script that probes an image, for any POSIX shell; `agentUser` must be a plain name. It lists all missing basics at once;
 * the rest is checked by the image's helpers, which repeat their check at start.
 */
export function probeScript(agentUser: string): string {
  return `if mcp=$(${MCP_HELPER} --check 2>/dev/null); then echo "mcp-$mcp"; fi
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
for helper in ${HELPERS.join(' ')}; do
  where=
  for folder in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do
    if [ -z "$where" ] && [ -f "$folder/$helper" ] && [ -x "$folder/$helper" ]; then where=$folder/$helper; fi
  done
  if [ -n "$where" ]; then echo "$helper=$where"; else echo "missing=$helper"; fi
  if [ "$helper" = svc-run-with-proxy-ca ]; then run=$where; fi
done
version=
[ ! -r /usr/local/share/svc/image-contract ] || read -r version </usr/local/share/svc/image-contract
echo "contract=$version"
{ [ -d /etc/svc/proxy ] && [ ! -L /etc/svc/proxy ]; } || echo 'missing=/etc/svc/proxy'
found=
[ ! -r /etc/passwd ] || while IFS=: read -r name _ uid _; do
  if [ "$name" = '${agentUser}' ] || [ "$uid" = '${agentUser}' ]; then found=yes; fi
done </etc/passwd
[ -n "$found" ] || echo 'missing=user'
{ [ -d /etc/ssl/certs ] || [ -d /etc/pki ] || [ -d /etc/ca-certificates ]; } || echo 'missing=trust-store'
if [ -n "$run" ] && [ "$version" = ${CONTRACT_VERSION} ]; then
  said=$(SVC_AGENT_USER='${agentUser}' "$run" --check 2>&1)
  echo "check=$?"
  printf '%s\\n' "$said" | while IFS= read -r line; do printf 'said:%s\\n' "$line"; done
fi
`;
}

const MAX_LINES = 200;
const MAX_LINE_LENGTH = 1_000;

/** Parses the probe's output. An image may print anything, so unknown lines are ignored. */
export function readProbe(output: string): ProbeReport {
  const facts = new Map<string, string>();
  const missing: string[] = [];
  const said: string[] = [];
  let exitCode: number | null = null;
  for (const raw of output.split('\n').slice(0, MAX_LINES)) {
    const line = raw.slice(0, MAX_LINE_LENGTH);
    const own = /^said:(.*)$/.exec(line)?.[1];
    const [, name = '', value = ''] = /^([A-Za-z][A-Za-z-]*)=(.*)$/.exec(own ?? line) ?? [];
    if (own === undefined && name === 'missing') missing.push(value);
    else if (own === undefined && name === 'check') exitCode = Number(value);
    else if (name !== '') facts.set(name, value);
    else if (own !== undefined && own !== '') said.push(own);
  }
  return { facts, missing, check: exitCode === null ? null : { exitCode, said: said.join('; ') } };
}
