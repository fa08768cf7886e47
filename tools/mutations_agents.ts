import type { Mutation } from './mutation.ts';

const PROFILE = 'cli/agents/agent_profile.ts';
const PROFILES = 'cli/agents/agent_profiles.ts';
const LOGIN = 'cli/agents/agent_login.ts';
const COMMANDS = 'cli/agents/agents_commands.test.ts';
const IN_PROFILE = 'cli/agents/agent_profile.test.ts';
const OF_USER = 'cli/agents/agent_profiles.test.ts';

/** Checks of the profiles of coding agents (decision 0057). */
export const AGENT_MUTATIONS: readonly Mutation[] = [
  {
    row: 'Agents: profiles',
    holds: 'a profile names exact hosts',
    file: PROFILE,
    text: "return host.value.kind === 'exact' ? null : 'has a \"*\" in it: a profile names each host';",
    replacement: 'return null;',
    tests: [IN_PROFILE],
  },
  {
    row: 'Agents: profiles',
    holds: 'a profile sets no variable that chooses or loads code',
    file: PROFILE,
    text: '  if (refusal !== null) return `is ${name}, which ${refusal}`;\n',
    replacement: '',
    tests: [IN_PROFILE],
  },
  {
    row: 'Agents: profiles',
    holds: 'a profile sets no variable that leads past the proxy',
    file: PROFILE,
    text: 'return mayHoldSentinel(name) ? null',
    replacement: 'return refusal === null ? null',
    tests: [IN_PROFILE],
  },
  {
    row: 'Agents: profiles',
    holds: 'a profile writes no file of another program',
    file: PROFILE,
    text: "  if (NOT_FOR_PROFILES.test(path)) context.addIssue({ code: 'custom', message: 'belongs to another program' });\n",
    replacement: '',
    tests: [IN_PROFILE],
  },
  {
    row: 'Agents: profiles',
    holds: 'a placeholder cannot be guessed',
    file: PROFILE,
    text: 'randomCharacters(text) < LEAST_RANDOM_CHARACTERS',
    replacement: 'randomCharacters(text) < 0',
    tests: [IN_PROFILE],
  },
  {
    row: 'Agents: own profiles',
    holds: 'a profile of another user is not used',
    file: PROFILES,
    text: 'if (uid !== undefined && stats.uid !== uid) {',
    replacement: 'if (uid === undefined && stats.uid === uid) {',
    tests: [OF_USER],
  },
  {
    row: 'Agents: own profiles',
    holds: 'a profile that others can write is not used',
    file: PROFILES,
    text: 'if ((stats.mode & 0o022) === 0) return;',
    replacement: 'if (stats.mode >= 0) return;',
    tests: [OF_USER],
  },
  {
    row: 'Agents: own profiles',
    holds: 'a profile in a folder that others can write is not used',
    file: PROFILES,
    text: '  requireOwn(folder, lstatSync(folder), uid);\n',
    replacement: '',
    tests: [OF_USER],
  },
  {
    row: 'Agents: own profiles',
    holds: 'a profile that is a link is not used',
    file: PROFILES,
    text: ' | constants.O_NOFOLLOW',
    replacement: '',
    tests: [OF_USER],
  },
  {
    row: 'Agents: own profiles',
    holds: 'a profile of the catalog is not replaced',
    file: 'cli/agents/own_names.ts',
    text: ' && !Object.hasOwn(AGENT_TITLES, name)',
    replacement: '',
    tests: [OF_USER],
  },
  {
    row: 'Agents: credentials',
    holds: 'a credential of another service is not stored for an agent',
    file: LOGIN,
    text: 'if (best !== undefined && other === undefined && !isForeign) return best;',
    replacement: 'if (best !== undefined && !isForeign) return best;',
    tests: [COMMANDS],
  },
  {
    row: 'Agents: credentials',
    holds: 'a credential with the shape of another service is not stored for an agent',
    file: LOGIN,
    text: 'service !== null && best !== undefined && service !== serviceOfLogin(best);',
    replacement: 'service !== null && best !== undefined && service === serviceOfLogin(best) && value === "";',
    tests: [COMMANDS],
  },
  {
    row: 'Agents: credentials',
    holds: 'a secret that an agent does not use is not overwritten',
    file: LOGIN,
    text: "  if ('value' in credential && ready === null && isStored) throw pathTakenError(profile, login);\n",
    replacement: '',
    tests: [COMMANDS],
  },
  {
    row: 'Agents: credentials',
    holds: 'an agent inherits no other credential of its own',
    file: 'cli/agents/agent_run.ts',
    text: 'Object.entries(session).filter(([name]) => !removed.has(name));',
    replacement: 'Object.entries(session);',
    tests: [COMMANDS],
  },
  {
    row: 'Agents: credentials',
    holds: 'the placeholder of a binding does not replace a credential',
    file: 'worker/services/vault/secrets.ts',
    text: '  if (await isPlaceholder(context, caller, input.value)) return err(placeholderError());\n',
    replacement: '',
    tests: ['worker/app.test.ts'],
  },
  {
    row: 'Agents: credentials',
    holds: 'a placeholder is not taken as the credential of an agent',
    file: 'cli/agents/agent_setup.ts',
    text: '  if (isStandIn(value) || bindings.some(({ sentinel }) => sentinel?.value === value)) {',
    replacement: '  if (bindings.length < 0) {',
    tests: [COMMANDS],
  },
  {
    row: 'Agents: credentials',
    holds: 'a placeholder is not sealed as a credential',
    file: 'cli/seal/seal_command.ts',
    text: ' || (await knownPlaceholders(call)).includes(value.trim())',
    replacement: '',
    tests: ['cli/seal/seal_command.test.ts'],
  },
];
