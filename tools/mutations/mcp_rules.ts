import type { Mutation } from '../mutation.ts';

const APPLY = 'worker/services/mcp/apply_rules.ts';
const RULES = 'worker/mcp_rules.test.ts';
const SHARED = 'shared/mcp/server_rules.test.ts';

/** The rules of an enterprise about MCP servers. */
export const MCP_RULE_MUTATIONS: readonly Mutation[] = [
  {
    row: 'MCP: rules',
    holds: 'a server that a rule stops is disabled in the snapshot',
    file: APPLY,
    text: 'const stopped = problem !== null && { enabled: false, ruleProblem: problem };',
    replacement: 'const stopped = problem !== null && { ruleProblem: problem };',
    tests: [RULES],
  },
  {
    row: 'MCP: rules',
    holds: 'a stopped server is disabled at the machine, whatever its record says',
    file: 'shared/wire/mcp/mcp_servers.ts',
    text: '{ ...server, enabled: false, ruleProblem }',
    replacement: '{ ...server, ruleProblem }',
    tests: [RULES],
  },
  {
    row: 'MCP: rules',
    holds: 'rules that cannot be read stop every server',
    file: APPLY,
    text: 'return parsed.success ? parsed.data : NOTHING_RUNS;',
    replacement: 'return parsed.success ? parsed.data : NO_MCP_RULES;',
    tests: [RULES],
  },
  {
    row: 'MCP: rules',
    holds: 'a new server that breaks a rule is refused',
    file: 'worker/services/mcp/mcp_servers.ts',
    text: '    const refused = await checkRules(context, row, isDerived);\n    if (refused !== null) return err(refused);\n',
    replacement: '',
    tests: [RULES],
  },
  {
    row: 'MCP: rules',
    holds: 'a changed server that breaks a rule is refused',
    file: 'worker/services/mcp/mcp_servers.ts',
    text: '  const refused = await checkRules(context, row, isDerived);\n  if (refused !== null) return err(refused);\n  const isMoved',
    replacement: '  const isMoved',
    tests: [RULES],
  },
  {
    row: 'MCP: rules',
    holds: 'the name of an entry counts only for what was derived from it',
    file: APPLY,
    text: 'isDerived ? configurationOf(row).registry_id : null',
    replacement: 'configurationOf(row).registry_id',
    tests: [RULES],
  },
  {
    row: 'MCP: rules',
    holds: 'every package of a command has to be on the list',
    file: 'shared/mcp/server_rules.ts',
    text: 'const [refused] = own.filter((source) => !isAllowed(source));',
    replacement: 'const [refused] = own.some((source) => isAllowed(source)) ? [] : own;',
    tests: [SHARED],
  },
  {
    row: 'MCP: rules',
    holds: 'the program of a command is of its packages',
    file: 'shared/mcp/dangers/package_runners.ts',
    text: '  if (!isOwnPackage && !isOfPackage(program, packages)) return null;\n',
    replacement: '',
    tests: [SHARED],
  },
  {
    row: 'MCP: rules',
    holds: 'unchecked code is on no list',
    file: 'shared/mcp/server_source.ts',
    text: "  if (commandDangers(command, env).some(({ severity }) => severity !== 'warn')) return null;\n",
    replacement: '',
    tests: [SHARED],
  },
  {
    row: 'MCP: rules',
    holds: "a server's own tool policy cannot be looser than the rules",
    file: 'shared/mcp/server_rules.ts',
    text: 'union(own.deny, rule.deny)',
    replacement: 'own.deny',
    tests: [SHARED],
  },
  {
    row: 'MCP: rules',
    holds: 'only an admin changes the rules',
    file: 'worker/services/mcp/mcp_rules.ts',
    text: "  if (!mayActAs(caller, 'admin')) return err(adminsOnly());\n  const { enterpriseId, userId } = caller;",
    replacement: '  const { enterpriseId, userId } = caller;',
    tests: [RULES],
  },
  {
    row: 'MCP: rules',
    holds: 'only an admin sees which servers of members rules would stop',
    file: 'worker/services/mcp/mcp_rules.ts',
    text: "  if (!mayActAs(caller, 'admin')) return err(adminsOnly());\n  const items",
    replacement: '  const items',
    tests: [RULES],
  },
  {
    row: 'MCP: rules',
    holds: 'a stopped remote server is not served to connected clients',
    file: 'worker/services/mcp/served/served_servers.ts',
    text: 'server: known.server }',
    replacement: 'server: { ...known.server, enabled: true } }',
    tests: [RULES],
  },
];
