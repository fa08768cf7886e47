import { z } from 'zod';
import { MCP_CREDENTIAL_NAME, MCP_SERVER_NAME } from '../../model/mcp_server.ts';
import { checkedText } from '../checked_text.ts';
import { headerNameProblem } from '../injection_fields.ts';
import { otherReferenceProblem, withoutReferences } from './mcp_references.ts';
import { lineProblem } from '../primitives.ts';
import { listHiddenCharacters } from '../../model/shown_text.ts';

const MAX_ARGUMENTS = 128;
const MAX_COMMAND_CHARACTERS = 64 * 1024;
const MAX_VALUE_CHARACTERS = 8 * 1024;
const MAX_VARIABLES = 100;
const MAX_HEADERS = 50;
const MAX_TOOL_PATTERNS = 1_000;
const MAX_URL_CHARACTERS = 4_000;

const NAME_FIX = 'write up to 48 of a-z, 0-9 and "-", beginning with a letter or digit, such as github';

/** The name of a server. */
export const mcpNameText = checkedText(48, NAME_FIX, (text) =>
  MCP_SERVER_NAME.test(text) ? null : `is not a server name: ${NAME_FIX}`,
);

const CREDENTIAL_NAME_FIX =
  'write the name of an environment variable: letters, digits and "_", not beginning with a digit';

/** The name of a credential, which for a local server is an environment variable. */
export const mcpCredentialName = checkedText(128, CREDENTIAL_NAME_FIX, credentialNameProblem);

export const mcpDescriptionText = checkedText(1_000, 'write one line of text', lineProblem);
export const mcpVersionText = checkedText(128, 'write the version, such as 1.2.3', (text) =>
  text === '' ? 'is empty: write the version, or null' : lineProblem(text),
);
export const mcpRegistryIdText = checkedText(256, 'write the name of the registry entry', (text) =>
  text === '' ? 'is empty: write the name of the registry entry, or null' : lineProblem(text),
);

const COMMAND_FIX =
  'write a list of the program and its arguments, such as ["npx", "-y", "a-package@1.2.3"]; no shell reads it';

/** The program and its arguments. */
export const mcpCommand = z
  .array(checkedText(MAX_VALUE_CHARACTERS, COMMAND_FIX, argumentProblem), { error: `must be a list: ${COMMAND_FIX}` })
  .max(MAX_ARGUMENTS, { error: `has more than ${MAX_ARGUMENTS} arguments`, abort: true })
  .superRefine((command, context) => {
    const [program] = command;
    const problem = program === undefined ? null : programProblem(program);
    if (problem !== null) context.addIssue({ code: 'custom', path: [0], message: problem });
    if (command.join(' ').length > MAX_COMMAND_CHARACTERS) {
      context.addIssue({ code: 'custom', message: `is longer than ${MAX_COMMAND_CHARACTERS} characters together` });
    }
  });

/** The environment of a local server, by name. */
export const mcpEnv = z
  .record(z.string(), checkedText(MAX_VALUE_CHARACTERS, 'write the value of the variable', argumentProblem), {
    error: 'must be an object of names and values, such as {"LOG_LEVEL": "info"}',
  })
  .superRefine((env, context) => {
    const names = Object.keys(env);
    if (names.length > MAX_VARIABLES) return reportTooMany(context, `has more than ${MAX_VARIABLES} variables`);
    for (const name of names) reportName(context, name, credentialNameProblem(name));
  });

/** The headers of every request to a remote server. */
export const mcpHeaders = z
  .record(z.string(), checkedText(MAX_VALUE_CHARACTERS, 'write the value of the header', headerValueProblem), {
    error: 'must be an object of names and values, such as {"X-Api-Key": "vault://mcp-servers/{id}/API_KEY"}',
  })
  .superRefine((headers, context) => {
    const names = Object.keys(headers);
    if (names.length > MAX_HEADERS) return reportTooMany(context, `has more than ${MAX_HEADERS} headers`);
    const seen = new Set<string>();
    for (const name of names) {
      const isTwin = seen.has(name.toLowerCase());
      seen.add(name.toLowerCase());
      reportName(context, name, isTwin ? 'stands here twice, in another case: write it once' : nameProblem(name));
    }
  });

/** The URL of a remote server. The gateway on the user's machine connects to it. */
export const mcpUrlText = checkedText(
  MAX_URL_CHARACTERS,
  'write the URL of the server, such as https://mcp.example.com/mcp',
  urlProblem,
);

const toolPattern = checkedText(256, 'write the name of a tool, or its beginning with "*" at the end', (text) =>
  /^(?:[^\s*]+\*?|\*)$/u.test(text) && listHiddenCharacters(text, false).length === 0
    ? null
    : 'is not a tool name: a "*" may stand only at the end',
);
const toolPatterns = toolPatternsUpTo(MAX_TOOL_PATTERNS);

function toolPatternsUpTo(most: number) {
  return z
    .array(toolPattern, { error: 'must be a list of tool names, such as ["read_*"]' })
    .max(most, { error: `has more than ${most} names` });
}

const EVERY_TOOL = { allow: null, deny: [], approval: [] };

/** Which tools may be called; by default all. */
export const mcpTools = toolsOf(toolPatterns);

/** The same with the rules of the enterprise, whose lists are added to the server's own. */
export const mcpToolsInForce = toolsOf(toolPatternsUpTo(2 * MAX_TOOL_PATTERNS));

function toolsOf(patterns: typeof toolPatterns) {
  return z
    .strictObject({
      allow: patterns.nullable().default(null),
      deny: patterns.default([]),
      approval: patterns.default([]),
    })
    .default(EVERY_TOOL);
}

function credentialNameProblem(name: string): string | null {
  if (/^SVC_/i.test(name)) return 'begins with "SVC_", which is reserved for the service: choose another name';
  return MCP_CREDENTIAL_NAME.test(name) ? null : `is not a variable name: ${CREDENTIAL_NAME_FIX}`;
}

function argumentProblem(text: string): string | null {
  if (text.includes('\0')) return 'contains a NUL character, which no program accepts';
  if (/\p{Cs}/u.test(text)) return 'is not well-formed Unicode: write text';
  return otherReferenceProblem(text);
}

function programProblem(program: string): string | null {
  if (program.trim() === '') return 'is empty: the first entry is the program';
  if (/vault:\/\//i.test(program))
    return 'is a reference: write the program in full, only its arguments may contain one';
  return listHiddenCharacters(program, false).length > 0
    ? 'contains a control or hidden character: write the program plainly'
    : null;
}

function headerValueProblem(text: string): string | null {
  if (/[\r\n]/.test(text)) return 'contains a line break: a header value is one line';
  if (!/^[ -~]*$/.test(text))
    return 'contains a character that is not printable ASCII, which a header value cannot have';
  if (text === '' || text.trim() !== text) return 'is empty, or begins or ends with a space: write only the value';
  return otherReferenceProblem(text);
}

/** Headers of the protocol, which only the gateway may set. */
const PROTOCOL_HEADERS = /^(?:mcp-.*|accept|content-type|last-event-id|origin)$/i;

function nameProblem(name: string): string | null {
  if (PROTOCOL_HEADERS.test(name)) return 'belongs to the protocol, and the gateway writes it: leave it out';
  return headerNameProblem(name);
}

function urlProblem(text: string): string | null {
  const query = text.indexOf('?');
  if (/vault:\/\//i.test(query < 0 ? text : text.slice(0, query))) {
    return 'has a reference before its query: put the credential in the query or in a header';
  }
  const other = otherReferenceProblem(text);
  if (other !== null) return other;
  const plain = withoutReferences(text);
  if (!/^[!-~]+$/.test(plain) || !URL.canParse(plain))
    return 'is not a URL: write it in full, such as https://mcp.example.com/mcp';
  const url = new URL(plain);
  if (url.username !== '' || url.password !== '')
    return 'contains a user name or password: put the credential in a header';
  if (url.hash !== '') return 'has a fragment: write it without';
  if (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))) return null;
  return 'is not https: only a server on this machine (localhost, 127.0.0.1, [::1]) may be plain http';
}

function isLoopback(hostname: string): boolean {
  return ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
}

function reportTooMany(context: z.core.$RefinementCtx, message: string): void {
  context.addIssue({ code: 'custom', message });
}

const MAX_SHOWN_KEY = 64;

/** A problem with a name in the object. If the name is too long to show, it becomes a problem of the object itself. */
function reportName(context: z.core.$RefinementCtx, name: string, problem: string | null): void {
  if (problem === null) return;
  const path = name.length <= MAX_SHOWN_KEY ? [name] : [`${name.slice(0, MAX_SHOWN_KEY)}…`];
  context.addIssue({ code: 'custom', path, message: problem });
}
