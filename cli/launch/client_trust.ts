import { spawn } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { isExecutable } from '../../machine/is_executable.ts';
import { SELF_TEST_HOST } from '../../shared/model/egress.ts';

/** In a self-test session the sidecar answers for it; without the proxy the name does not resolve. So a probe contacts no host. */
const PROBE_URL = `https://${SELF_TEST_HOST}/`;

/** An HTTPS client, and a command line that makes one call with it and prints the reply's status. */
export interface Client {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** The fix if the client does not trust the CA or bypasses the proxy. */
  readonly fix: string;
}

const PYTHON_PROBE = `
import sys, urllib.request, urllib.error
try:
    urllib.request.urlopen(sys.argv[1], timeout=8)
except urllib.error.HTTPError as error:
    print(error.code)
except Exception as error:
    print(error, file=sys.stderr)
    sys.exit(1)
`;
const REQUESTS_PROBE = 'import sys, requests; print(requests.get(sys.argv[1], timeout=8).status_code)';
const FETCH_PROBE = `const { argv } = process; fetch(argv[1]).then((reply) => console.log(reply.status), (error) => { console.error(String(error.cause ?? error)); process.exit(1); });`;

export const CLIENTS: readonly Client[] = [
  {
    name: 'curl',
    command: 'curl',
    args: ['-sS', '-o', '/dev/null', '-w', '%{http_code}', '--max-time', '8', PROBE_URL],
    fix: 'remove `cacert` or `noproxy` from ~/.curlrc',
  },
  {
    name: 'git',
    command: 'git',
    args: ['ls-remote', PROBE_URL],
    fix: 'remove http.sslCAInfo and http.proxy, which `git config --show-origin --list` shows',
  },
  {
    name: 'node fetch',
    command: 'node',
    args: ['-e', FETCH_PROBE, PROBE_URL],
    fix: 'use Node 22.21, 24.5 or newer: older versions ignore the proxy variables',
  },
  {
    name: 'python urllib',
    command: 'python3',
    args: ['-c', PYTHON_PROBE, PROBE_URL],
    fix: 'update Python: this version ignores SSL_CERT_FILE',
  },
  {
    name: 'python requests',
    command: 'python3',
    args: ['-c', REQUESTS_PROBE, PROBE_URL],
    fix: 'update requests: this version ignores REQUESTS_CA_BUNDLE',
  },
  {
    name: 'wget',
    command: 'wget',
    args: ['-nv', '-S', '-O', '/dev/null', '--timeout=8', '--tries=1', PROBE_URL],
    fix: 'wget built with GnuTLS ignores CA variables: use wget --ca-certificate="$SSL_CERT_FILE", or curl',
  },
];

export type TrustOutcome = 'trusted' | 'not_installed' | 'untrusted' | 'past_the_proxy' | 'unclear';

const TIMEOUT_MS = 12_000;

/** Runs a client's probe in the environment of a session. */
export async function probeClient(client: Client, env: Readonly<Record<string, string>>): Promise<TrustOutcome> {
  if (!isOnPath(client.command, env['PATH'] ?? '')) return 'not_installed';
  return outcomeOf(await outputOf(client, env));
}

/** Interprets a probe's output. The answer's status comes from the proxy, through TLS. */
export function outcomeOf(output: string): TrustOutcome {
  if (/No module named/.test(output)) return 'not_installed';
  if (/\b403\b/.test(output)) return 'trusted';
  // The session's certificate always names the host: a certificate for another host is not from the proxy.
  if (/ALTNAME|does not match|hostname mismatch|no alternative certificate/i.test(output)) return 'past_the_proxy';
  if (/certificate|self.signed|\bSSL\b|\bTLS\b|CERT_|UNABLE_TO/i.test(output)) return 'untrusted';
  if (
    /refused|resolve|name resolution|not known|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|timed? ?out|unreachable/i.test(
      output,
    )
  )
    return 'past_the_proxy';
  return 'unclear';
}

/** True if a program of this name can be executed from a folder of PATH. */
export function isOnPath(command: string, path: string): boolean {
  return path.split(delimiter).some((folder) => isExecutable(join(folder, command)));
}

function outputOf(client: Client, env: Readonly<Record<string, string>>): Promise<string> {
  return new Promise((resolve) => {
    const child = spawn(client.command, client.args, {
      env: { ...env, LC_ALL: 'C', GIT_TERMINAL_PROMPT: '0' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS);
    let output = '';
    const take = (chunk: Buffer): void => {
      output = (output + chunk.toString('utf8')).slice(-8_192);
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    const finish = (): void => {
      clearTimeout(timer);
      resolve(output);
    };
    child.once('error', finish);
    child.once('close', finish);
  });
}
