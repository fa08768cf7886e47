import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const RULE = 'shared/model/shown_text.ts';
const ROOTS = ['shared', 'machine', 'sandbox', 'gateway', 'sidecar', 'cli', 'worker', 'bin'];
/** What a rule about hidden characters is written with. */
const STRAY =
  /\\[pP]\{(?:C|Cc|Cf|Cn|Co|Cs|Z|Zl|Zp|Zs|Other|Control|Format|Default_Ignorable_Code_Point|General_Category[^}]*)\}|\\u\{?(?:0*200[b-f]|0*20(?:2[89a-f]|6[0-9a-f])|feff|e00[0-9a-f]{2}|0*7f)\}?|(?<!\\0-)\\x(?:1b|7f|9b)|x20-\\x7e/i;

/** Patterns that decide something else than what a person may be shown, and how many lines of each file have one. */
const OTHER_RULES: Readonly<Record<string, readonly [number, string]>> = {
  'shared/borrow/borrow_calls.ts': [1, 'what an argument of a process can hold'],
  'shared/borrow/read_output.ts': [1, 'what a credential can hold'],
  'shared/connect/arg_problem.ts': [2, 'what can be sent in a path, and well-formed text'],
  'shared/connect/graphql_document.ts': [1, 'what GraphQL servers read in more than one way'],
  'shared/connect/json_values.ts': [2, 'what ends a string in C'],
  'shared/enforce/json_request.ts': [1, 'what ends a string in C'],
  'shared/inject/inject.ts': [1, 'what can be written into a header'],
  'shared/mcp/command_dangers.ts': [1, 'what an argument of a process can hold'],
  'shared/mcp/consent_hash.ts': [1, 'canonical JSON holds no lone surrogate'],
  'shared/mcp/dangers/docker_mount.ts': [1, 'what a path of a mount can hold'],
  'shared/mcp/dangers/environment_dangers.ts': [1, 'what a variable can hold'],
  'shared/mcp/dangers/runner_options.ts': [1, 'what a path can hold'],
  'shared/mcp/install/input_values.ts': [2, 'what an argument or one line of a value can hold'],
  'shared/mcp/references.ts': [1, 'canonical JSON holds no lone surrogate'],
  'shared/mcp/registry/loose_fields.ts': [1, 'a text is cut between characters'],
  'shared/mcp/tools/param_headers.ts': [1, 'what a header can carry'],
  'shared/mcp/tools/text_marks.ts': [
    2,
    'codes for a terminal, written as a program would; how text is folded for the search',
  ],
  'shared/mcp/tools/tool_definition.ts': [1, 'canonical JSON holds no lone surrogate'],
  'shared/model/json_names.ts': [1, 'what servers ignore in a word'],
  'shared/net/ip_literal.ts': [1, 'what an address can hold'],
  'shared/net/look_alike.ts': [1, 'whether a letter is ASCII'],
  'shared/wire/audit_events.ts': [1, 'what the database can hold'],
  'shared/wire/audit_sinks.ts': [1, 'what a header can carry'],
  'shared/wire/connectors/connector_spec_fields.ts': [1, 'what a path of HTTP can hold'],
  'shared/wire/host_binding_fields.ts': [1, 'what Basic authentication can carry'],
  'shared/wire/mcp/mcp_server_fields.ts': [1, 'canonical JSON holds no lone surrogate'],
  'shared/wire/plan/plan_fields.ts': [1, 'canonical JSON holds no lone surrogate'],
  'shared/wire/secrets.ts': [1, 'canonical JSON holds no lone surrogate'],
  'shared/wire/sources/vault_fields.ts': [1, 'what a path in Vault can hold'],
  'cli/mcp/json_with_comments.ts': [1, 'a byte order mark is no part of JSON'],
  'cli/launch/launch_options.ts': [1, 'what a path can hold'],
  'cli/terminal/read_secret.ts': [1, 'which key deletes a character'],
  'cli/connectors/openapi_operations.ts': [1, 'a text is cut between characters'],
  'sandbox/image/mcp/event_stream.ts': [1, 'a byte order mark is no part of a stream'],
  'sandbox/launch/mount_policy.ts': [1, 'what a path can hold'],
  'sandbox/seatbelt/profile_text.ts': [1, 'what the name of a path in a profile can hold'],
  'worker/services/connectors/connector_call.ts': [1, 'what can be written into a header'],
  'worker/services/audit/event_intake.ts': [1, 'a text is cut between characters'],
  'worker/services/mcp/served/open_server.ts': [1, 'what can be written into a header'],
  'worker/services/sinks/syslog_sink.ts': [1, 'a message of syslog is printable ASCII'],
  'worker/sign_in/flows.ts': [1, 'what a subject of OpenID Connect can hold'],
  'worker/sign_in/saml/saml_xml.ts': [1, 'a byte order mark is no part of XML'],
  'worker/tokens/mcp/identity_assertion.ts': [1, 'what a subject of OpenID Connect can hold'],
  'worker/tokens/mcp/oauth_refusal.ts': [1, 'what RFC 6749 allows in a description'],
};

function sources(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:ts|js|mjs)$/.test(name) && !/\.test\.ts$|testing\//.test(name))
    .map((name) => join(folder, name));
}

test('one file decides which characters a person may be shown, and no other has a rule of its own', () => {
  const found: Record<string, number> = {};
  for (const file of ROOTS.flatMap(sources).filter((name) => name !== RULE)) {
    const lines = readFileSync(file, 'utf8').split('\n');
    const stray = lines.filter((line) => STRAY.test(line) && !/^\s*(?:\/\/|\*|\/\*)/.test(line));
    if (stray.length > 0) found[file] = stray.length;
  }
  expect(found).toEqual(Object.fromEntries(Object.entries(OTHER_RULES).map(([file, [lines]]) => [file, lines])));
});
