import { describe, expect, test } from 'vitest';
import { NO_MCP_RULES, type McpRules } from '../model/mcp_rules.ts';
import { findEntryRuleProblem, findPlanRuleProblem } from './entry_rules.ts';
import { planInstallation } from './installation.ts';
import { entryOf, packageEntry, planOf, remoteEntry } from './testing/entries.ts';

const rulesOf = (rules: Partial<McpRules>): McpRules => ({ ...NO_MCP_RULES, ...rules });
const BOTH = entryOf({
  name: 'com.acme/files',
  version: '1.0.0',
  packages: [{ registryType: 'npm', identifier: '@acme/files', version: '1.0.0', transport: { type: 'stdio' } }],
  remotes: [{ type: 'streamable-http', url: 'https://mcp.acme.com/mcp' }],
});

describe('an entry of the marketplace', () => {
  test.each([
    [{}, true],
    [{ sources: [] }, false],
    [{ sources: ['npm:@acme/*'] }, true],
    [{ sources: ['host:*.acme.com'] }, true],
    [{ sources: ['registry:com.acme/*'] }, true],
    [{ sources: ['pypi:*'] }, false],
    [{ sources: ['npm:@acme/*'], pinned_only: true }, true],
    // The install puts it into a container.
    [{ isolation: 'container' }, true],
  ] as const)('by %j may be used: %s', (rules, mayBe) => {
    expect(findEntryRuleProblem(rulesOf(rules), BOTH) === null).toBe(mayBe);
  });

  test('says what is not on the list', () => {
    expect(findEntryRuleProblem(rulesOf({ sources: ['pypi:*'] }), BOTH)).toContain(
      'npm:@acme/files is not on the list of servers that may run',
    );
  });

  test('of which nothing can be installed breaks no rule', () => {
    const entry = packageEntry({ registryType: 'mcpb' });
    expect(findEntryRuleProblem(rulesOf({ sources: [] }), entry)).toBeNull();
  });

  test('is judged whatever values it asks for', () => {
    const path = { type: 'positional', valueHint: 'path', isRequired: true };
    const env = [{ name: 'API_KEY', isRequired: true, isSecret: true }];
    const entry = packageEntry({ packageArguments: [path], environmentVariables: env });
    expect(findEntryRuleProblem(rulesOf({ sources: ['npm:@acme/demo'] }), entry)).toBeNull();
    expect(findEntryRuleProblem(rulesOf({ sources: ['npm:@acme/other'] }), entry)).toContain('npm:@acme/demo');
  });

  test('whose host is an input is judged at the install', () => {
    const entry = remoteEntry({ url: 'https://{site}.acme.com/mcp', variables: { site: { isRequired: true } } });
    expect(findPlanRuleProblem(rulesOf({ sources: [] }), entry.name, planOf(entry))).toBeNull();
  });
});

function planned(rules: Partial<McpRules>): string {
  const plan = planInstallation(
    BOTH,
    undefined,
    (each) => findPlanRuleProblem(rulesOf(rules), BOTH.name, each) === null,
  );
  return plan.ok ? plan.value.choice.kind : plan.error.reason;
}

test('an install uses the best way that may be used, and the best of all if none may', () => {
  expect(planned({})).toBe('package');
  expect(planned({ sources: ['host:*.acme.com'] })).toBe('remote');
  expect(planned({ sources: [] })).toBe('package');
});
