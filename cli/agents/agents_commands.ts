import type { SignalSource } from '../../sandbox/engine/run_child.ts';
import { controlClient, findRunning } from '../clients.ts';
import { collectValue, handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { isOnPath } from '../launch/client_trust.ts';
import { homeOf } from '../up/home.ts';
import { listHomes, removeHomes } from './agent_homes.ts';
import { readStoredIfReachable, findReadyLogins, type Stored } from './agent_login.ts';
import { AGENT_TITLES } from './agent_names.ts';
import { packageOf } from './agent_profile.ts';
import { loadProfiles, type FoundProfile } from './agent_profiles.ts';
import { placesOf } from './agent_setup.ts';

/** `svc agents`. */
export function addAgentsCommand(line: CommandLine): void {
  const agents = line.program.command('agents').description('coding agents that svc starts by name');
  const list = agents
    .command('list', { isDefault: true })
    .description('list them: installed, tried, what a container gets, the stored credential (also: svc agents)');
  handle(line, list, listAgents);
  const homes = agents
    .command('homes')
    .description('list the homes that agents have in containers, or remove some with all that is in them')
    .option('--forget <volume>', 'remove this one (repeatable)', collectValue)
    .option('--forget-all', 'remove all of them');
  handle<HomesOptions>(line, homes, listOrForgetHomes);
}

/** `svc claude` and the like. Everything after the name belongs to the agent. */
export function addAgentCommand(line: CommandLine, signals: SignalSource, name: string): void {
  const title = Object.entries(AGENT_TITLES).find(([known]) => known === name)?.[1];
  const command = line.program
    .command(name)
    .description(title === undefined ? `run ${name}, by your own profile` : `run ${title} with a sealed credential`)
    .usage('[ARGUMENT...]')
    .argument('[argument...]', 'passed to the agent as it is');
  handle<object>(line, command, async (call) => {
    const { runAgent } = await import('./agent_run.ts');
    return runAgent(call, signals, name, call.args);
  });
}

interface AgentRow {
  readonly name: string;
  readonly title: string;
  readonly command: string;
  readonly installed: boolean;
  /** The version that svc's own tests run; null if nobody has tried the profile. */
  readonly tried: string | null;
  /** What `svc launch NAME` puts into an image; null if svc does not know how. */
  readonly container: { readonly package: string; readonly version: string } | null;
  /** The stored logins; null if svc is not running. */
  readonly logins: readonly { readonly name: string; readonly credential_ref: string }[] | null;
  /** The file of a profile that the user wrote. */
  readonly profile: string | null;
}

async function listAgents(call: Call): Promise<undefined> {
  const { context, options, print } = call;
  const found = loadProfiles(placesOf(call), (problem) => print.warn([problem.message, ...problem.fixes].join(' ')));
  const running = findRunning(homeOf(context, options)) !== null;
  const stored = running ? await readStoredIfReachable(() => controlClient(context, options)) : null;
  const items = found.map((each) => rowOf(call, each, stored));
  print.rows(
    { items },
    items,
    [
      { title: 'NAME', cell: (row) => row.name },
      { title: 'AGENT', cell: (row) => row.title },
      { title: 'INSTALLED', cell: (row) => (row.installed ? 'yes' : 'no') },
      { title: 'TRIED', cell: triedText },
      { title: 'CONTAINER', cell: (row) => (row.container === null ? 'no' : row.container.version) },
      { title: 'CREDENTIAL', cell: credentialText },
    ],
    'There are no agents.',
  );
}

function rowOf(call: Call, { profile, file, own }: FoundProfile, stored: Stored | null): AgentRow {
  const packaged = packageOf(profile);
  const ready = stored === null ? null : findReadyLogins(profile, stored);
  return {
    name: profile.name,
    title: profile.title,
    command: profile.command,
    installed: isOnPath(profile.command, call.context.env['PATH'] ?? ''),
    tried: profile.tried,
    container: packaged === null ? null : { package: packaged.name, version: packaged.version },
    logins: ready?.map(({ login, reference }) => ({ name: login.name, credential_ref: reference })) ?? null,
    profile: own ? file : null,
  };
}

function triedText({ tried, profile }: AgentRow): string {
  return tried ?? (profile === null ? 'untried' : 'your own');
}

function credentialText({ logins }: AgentRow): string {
  if (logins === null) return '(svc is not running)';
  return logins.length === 0 ? 'none' : logins.map((login) => `${login.credential_ref} (${login.name})`).join(', ');
}

interface HomesOptions {
  readonly forget?: readonly string[];
  readonly forgetAll?: boolean;
}

/** `svc agents homes` */
async function listOrForgetHomes(call: Call<HomesOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const found = await listHomes(context.env, homeOf(context, options), (problem) => print.warn(problem));
  const { forget = [], forgetAll = false } = options;
  const unknown = forget.find((name) => !found.some((home) => home.name === name));
  if (unknown !== undefined) {
    throw new CliError(EXIT.failed, `there is no home ${JSON.stringify(unknown)}`, ['List them: svc agents homes']);
  }
  if (forgetAll || forget.length > 0) {
    const wanted = found.filter(({ name }) => forgetAll || forget.includes(name));
    const removed = await removeHomes(context.env, wanted);
    print.line({ removed }, `removed ${removed.length} of ${found.length} homes`);
    return;
  }
  const homes = found.map(({ name, agent, folder }) => ({ volume: name, agent, folder }));
  print.rows(
    { homes },
    homes,
    [
      { title: 'AGENT', cell: (home) => home.agent },
      { title: 'FOLDER', cell: (home) => home.folder },
      { title: 'VOLUME', cell: (home) => home.volume },
    ],
    'No agent has a home in a container.',
  );
}
