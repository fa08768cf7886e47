import { z } from 'zod';
import { commandDangers } from '../../shared/mcp/command_dangers.ts';
import { findUncheckedCode } from '../../shared/mcp/consent_hash.ts';
import { describeFetchAtStart } from '../../shared/mcp/fetch_at_start.ts';
import { hasReference } from '../../shared/mcp/references.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import type { MachineServer } from './mcp_machine.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Paint } from '../terminal/output.ts';
import { agoText } from '../terminal/relative_time.ts';
import { parseJson } from '../../shared/model/json.ts';
import { commandText } from '../terminal/cell_text.ts';

/** The consent's hashed content, in readable form. */
const consented = z.object({
  command: z.array(z.string()),
  env: z.record(z.string(), z.string()),
  version: z.string().nullable(),
  isolation: z.string(),
});

/** What this machine adds. */
interface ConsentTexts {
  /** Where it would run and what it would reach. */
  readonly isolation: string;
  /** The package that would be installed. */
  readonly packageText?: string;
  /** The image that its own `docker run` names now; null or absent without one, or if it is looked up later. */
  readonly image?: { readonly id: string; readonly text: string } | null;
}

/**
 * Everything a person needs to decide: the exact command and its inputs, the package that is installed, its origin, its
 * dangers, and what changed since the last consent.
 */
export function consentView(
  known: MachineServer,
  now: number,
  paint: Paint,
  { isolation, packageText, image = null }: ConsentTexts,
): string {
  const { server, last_consent: last, missing } = known;
  const dangers = commandDangers(server.command, server.env);
  const fetches = packageText === undefined ? describeFetchAtStart(server.command) : null;
  const rows: (readonly [string, string])[] = [
    ['runs', commandText(server.command)],
    ...prefixNames('with', variableTexts(server.env)),
    ...(packageText === undefined ? [] : [['installs', packageText] as const]),
    ...(fetches === null ? [] : [['fetches', fetches] as const]),
    ...(image === null ? [] : [['image', image.text] as const]),
    ['version', server.version ?? 'none is named'],
    ['from', server.registryId === null ? 'registered by hand' : `the registry: ${server.registryId}`],
    ['isolation', isolation],
    ...prefixNames(
      'not stored',
      missing.map((path) => path.slice(path.lastIndexOf('/') + 1)),
    ),
    ['consented', last === null ? 'never' : `${agoText(last.consented_at, now)}, to something else`],
    ...prefixNames('changed', last === null ? [] : [...changes(last.text, server), ...imageChanges(known, image)]),
    ...prefixNames(
      'asked anew',
      last !== null && isNewlyUnchecked(last.text, server) ? ['because it now counts as unchecked'] : [],
    ),
    ...dangers.map(({ severity, message }) => [WORDS[severity], `it ${message}`] as const),
  ];
  const title = `${toPrintable(server.name)} (${server.owner}, ${server.id})${server.description === '' ? '' : `: ${toPrintable(server.description)}`}`;
  const lines = rows.map(([name, text]) => `  ${name.padEnd(11)}${toPrintable(text)}\n`);
  return `${paint('bold', title)}\n${lines.join('')}`;
}

const WORDS = { refuse: 'REFUSED', unchecked: 'UNCHECKED', warn: 'warning' } as const;

function prefixNames(name: string, texts: readonly string[]): readonly (readonly [string, string])[] {
  return texts.map((text, index) => [index === 0 ? name : '', text] as const);
}

function variableTexts(env: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(env).map(
    ([name, value]) =>
      `${name}=${JSON.stringify(value)}${hasReference(value) ? ' (a credential, inserted at start)' : ''}`,
  );
}

function changes(before: string, { command, env, version, isolation }: McpServer): readonly string[] {
  const parsed = consented.safeParse(parseJson(before));
  if (!parsed.success) return ['the earlier consent cannot be read'];
  const old = parsed.data;
  return [
    ...change(commandText(old.command), commandText(command)),
    ...variableChanges(old.env, env),
    ...change(`version ${old.version ?? 'none'}`, `version ${version ?? 'none'}`),
    ...change(`isolation ${old.isolation}`, `isolation ${isolation}`),
  ];
}

function variableChanges(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): readonly string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) => change(variable(name, before[name]), variable(name, after[name])));
}

function variable(name: string, value: string | undefined): string {
  return value === undefined ? '' : `${name}=${JSON.stringify(value)}`;
}

function imageChanges({ image: before }: MachineServer, now: { readonly id: string } | null): readonly string[] {
  if (now === null) return [];
  if (before === null) return ['its image was not part of the earlier consent'];
  return change(`image ${before}`, `image ${now.id}`);
}

function change(before: string, after: string): readonly string[] {
  if (before === after) return [];
  return [...(before === '' ? [] : [`- ${before}`]), ...(after === '' ? [] : [`+ ${after}`])];
}

/** Whether the earlier consent covered the same configuration, before it was known to be unchecked. */
function isNewlyUnchecked(before: string, server: McpServer): boolean {
  const was = z.object({ unchecked: z.boolean().optional() }).safeParse(parseJson(before)).data;
  return was?.unchecked !== true && findUncheckedCode(server).length > 0;
}
