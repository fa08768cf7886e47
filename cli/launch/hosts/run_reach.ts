import { type AllowList, type Egress, EGRESS_MODES } from '../../../shared/model/egress.ts';
import { HTTPS_PORT, portOfHost } from '../../../shared/net/host_port.ts';
import { parseAllowedHost, parsePlainHost } from '../../../shared/resolve/admitted_host.ts';
import type { Call } from '../../command_line.ts';
import { CliError, EXIT } from '../../exit_codes.ts';
import { homeOf } from '../../up/home.ts';
import { isBoxed, notStarted, type RunInSession, type RunOptions } from '../run_options.ts';
import { allowListFor, type ListPlace, otherPortsFor } from './allowed_hosts.ts';
import { keptNoProxy } from './kept_no_proxy.ts';
import { plainHttpFor } from './plain_http_option.ts';

/** Which hosts a run reaches: by its options, its folder and its agent. */
export interface RunReach {
  readonly egress: Egress;
  /** The hosts that the session is limited to; undefined: it reaches every host. */
  readonly allowList: AllowList | undefined;
  readonly plainHttp: AllowList | undefined;
  readonly otherPorts: AllowList | undefined;
}

/** Reads it from what was typed and from the list of the folder; asks nobody. */
export function reachOf(call: Call<RunOptions>, wanted: RunInSession): RunReach {
  const egress = egressOf(call, wanted);
  const allowList = allowListOf(call, egress, wanted.expectedHosts);
  return { egress, allowList, plainHttp: plainHttpOf(call), otherPorts: otherPortsOf(call, egress) };
}

/** What the sandbox lets out; open without one. */
function egressOf(call: Call<RunOptions>, wanted: RunInSession): Egress {
  const { egress: text = 'open', allowOnly, sandboxRead = [], sandboxWrite = [] } = call.options;
  const egress = EGRESS_MODES.find((each) => each === text);
  if (egress === undefined) {
    const message = `--egress is ${JSON.stringify(text)}: use open, sealed or sealed,public`;
    throw new CliError(EXIT.notStarted, message);
  }
  if (isBoxed(call, wanted)) return egress === 'open' && allowOnly !== undefined ? 'sealed' : egress;
  if (sandboxRead.length + sandboxWrite.length > 0) {
    throw new CliError(EXIT.notStarted, '--sandbox-read and --sandbox-write need --sandbox');
  }
  if (egress === 'open') return egress;
  throw new CliError(EXIT.notStarted, `--egress=${egress} needs a sandbox`, [
    `Use: svc run --sandbox --egress=${egress} -- COMMAND`,
    'In a container: svc launch --egress=sealed -- COMMAND',
    'A rule for programs that use the proxy, which others can bypass: svc run --allow-only HOST -- COMMAND',
  ]);
}

/** The hosts that the session is limited to, with those of the folder and the agent; undefined: it reaches every host. */
function allowListOf(
  call: Call<RunOptions>,
  egress: Egress,
  agentsHosts: readonly string[] = [],
): AllowList | undefined {
  const { allowOnly } = call.options;
  const typed = [
    ...parseTyped('--allow-only', allowOnly ?? []),
    ...(egress === 'open' ? [] : parseTyped('--allow', call.options.allow ?? [])),
  ];
  if (egress === 'sealed,public') {
    const named = typed.filter((host) => !host.includes('*'));
    return named.length === 0 ? undefined : { hosts: [], named };
  }
  if (egress === 'open' && allowOnly === undefined) return undefined;
  try {
    return allowListFor({ ...placeOf(call), more: agentsHosts }, typed);
  } catch (error) {
    throw notStarted(error);
  }
}

/** The user's NO_PROXY for the command: nothing in a login, because a request past the sidecar brings the program real tokens. */
export function exemptHosts(
  call: Call<RunOptions>,
  wanted: RunInSession,
  { allowList }: RunReach,
): Promise<readonly string[]> {
  const { login, expectedHosts = [] } = wanted;
  // In a sandbox nothing can be reached past the proxy.
  if (login !== undefined || allowList !== undefined || isBoxed(call, wanted)) return Promise.resolve([]);
  return keptNoProxy(call, expectedHosts);
}

/** The hosts of `--plain-http` and the folder. */
function plainHttpOf(call: Call<RunOptions>): AllowList | undefined {
  const typed = parseTyped('--plain-http', call.options.plainHttp ?? [], parsePlainHost);
  try {
    return plainHttpFor(placeOf(call), typed);
  } catch (error) {
    throw notStarted(error);
  }
}

/** The hosts of `--allow` and the folder that are at other ports than 443; in a sealed sandbox they are in its list. */
function otherPortsOf(call: Call<RunOptions>, egress: Egress): AllowList | undefined {
  if (egress === 'sealed') return undefined;
  const typed = parseTyped('--allow', call.options.allow ?? []).filter(
    (host) => egress === 'open' || portOfHost(host) !== HTTPS_PORT,
  );
  const onHttps = typed.find((host) => portOfHost(host) === HTTPS_PORT);
  if (onHttps !== undefined) {
    throw new CliError(
      EXIT.notStarted,
      `--allow ${onHttps}: svc run reaches every host on port 443; name another port`,
      [
        `Another port: svc run --allow ${onHttps}:8443 -- COMMAND`,
        `Only some hosts: svc run --allow-only ${onHttps} -- COMMAND`,
      ],
    );
  }
  try {
    return otherPortsFor(placeOf(call), typed);
  } catch (error) {
    throw notStarted(error);
  }
}

function placeOf({ context, options }: Call<RunOptions>): ListPlace {
  return { home: homeOf(context, options), folder: context.workingDirectory };
}

function parseTyped(option: string, texts: readonly string[], parse = parseAllowedHost): readonly string[] {
  return texts.map((text) => {
    const host = parse(text);
    if (host.ok) return host.value;
    throw new CliError(EXIT.notStarted, `${option} ${host.error}`);
  });
}
