import type { Command } from 'commander';
import { formatQuota, QUOTA_KINDS, QUOTAS, type QuotaScope } from '../../shared/model/quotas/quotas.ts';
import { SETTINGS } from '../../shared/model/settings.ts';
import { choicesOf, isNeeded } from '../../shared/wire/sources/field_form.ts';
import type { SourceFields } from '../../shared/wire/sources/source_descriptor.ts';
import { SOURCE_KINDS, SOURCE_TABLE } from '../../shared/wire/sources/source_table.ts';
import { EXIT_CODE_ROWS } from '../exit_codes.ts';

/** The table of docs/reference/settings.md, between `<!-- settings -->` and `<!-- /settings -->`. */
export function renderSettingsTable(): string {
  const rows = SETTINGS.map(({ name, flag, default: byDefault, meaning, readBy }) => [
    code(name),
    flag === null ? '' : code(flag),
    cell(byDefault),
    cell(meaning),
    readBy.join(', '),
  ]);
  return table(['Variable', 'Flag', 'Default', 'Meaning', 'Read by'], rows);
}

const OF: Readonly<Record<QuotaScope, string>> = {
  owner: 'a person, and the enterprise for what it owns',
  person: 'a person or service account',
  enterprise: 'an enterprise with all its people',
};

/** The table of docs/reference/quotas.md, between `<!-- quotas -->` and `<!-- /quotas -->`. */
export function renderQuotaTable(): string {
  const rows = QUOTA_KINDS.map((kind) => {
    const { scope, what, most } = QUOTAS[kind];
    return [code(kind), cell(what), OF[scope], formatQuota(kind, most)];
  });
  return table(['Kind', 'What', 'Of', 'Limit'], rows);
}

/** The table of docs/credential_sources.md, between `<!-- kinds -->` and `<!-- /kinds -->`. */
export function renderSourceTable(): string {
  const rows = SOURCE_KINDS.map((kind) => {
    const { keys, lifeSeconds, narrowedBy, revokes, fields } = SOURCE_TABLE[kind];
    const life = lifeSeconds === null ? 'as its provider says' : `${lifeSeconds / 60} minutes`;
    const hasOwnLife = Object.hasOwn(fields, 'duration_seconds');
    return [
      code(kind),
      keys.join(' or '),
      hasOwnLife ? `${code('duration_seconds')}, or ${life}` : life,
      Object.keys(narrowedBy).map(code).join(', '),
      revokes === 'by revocation_url' ? `with ${code('revocation_url')}` : { always: 'yes', never: 'no' }[revokes],
      fieldNames(fields),
    ];
  });
  return table(['Kind', 'Key', 'Longest life', 'Narrowed by', 'Revoked', 'Fields'], rows);
}

function fieldNames(fields: SourceFields): string {
  const texts = Object.entries(fields).map(([name, { schema }]) => {
    const choices = choicesOf(schema)?.map(code).join(', ');
    const text = isNeeded(schema) ? `**${code(name)}**` : code(name);
    return choices === undefined ? text : `${text} (${choices})`;
  });
  return texts.join(', ');
}

/** The tables of docs/reference/commands.md, between `<!-- cli -->` and `<!-- /cli -->`: every command, and the exit codes. */
export function renderCommandTable(program: Command): string {
  const rows = leaves(program).map((command) => [code(`svc ${pathOf(command)}`), cell(command.description())]);
  const codes = EXIT_CODE_ROWS.map(([exitCode, meaning]) => [cell(exitCode), cell(meaning)]);
  return `${table(['Command', 'What it does'], rows)}\n${table(['Exit code', 'Meaning'], codes)}`;
}

/** The table rows between a document's markers; null if a marker is missing. */
export function tableRows(markdown: string, name: string): readonly string[] | null {
  const place = findSection(markdown, name);
  return place === null ? null : rowsOf(markdown.slice(place.from, place.to));
}

/** Every row of a table's text. */
export function rowsOf(text: string): readonly string[] {
  return text.split('\n').filter((line) => line.startsWith('|'));
}

/** The document with the table between the markers replaced. */
export function withTable(markdown: string, name: string, text: string): string {
  const place = findSection(markdown, name);
  if (place === null) throw new Error(`the document has no <!-- ${name} --> ... <!-- /${name} -->`);
  return `${markdown.slice(0, place.from)}\n\n${text}\n${markdown.slice(place.to)}`;
}

function findSection(markdown: string, name: string): { readonly from: number; readonly to: number } | null {
  const begin = `<!-- ${name} -->`;
  const at = markdown.indexOf(begin);
  const to = markdown.indexOf(`<!-- /${name} -->`);
  return at < 0 || to < at ? null : { from: at + begin.length, to };
}

function leaves(command: Command): Command[] {
  const children = command
    .createHelp()
    .visibleCommands(command)
    .filter((child) => child.name() !== 'help');
  return children.length === 0 ? [command] : children.flatMap(leaves);
}

function pathOf(command: Command): string {
  const words = [command.name(), ...command.registeredArguments.map((argument) => argumentText(argument))];
  for (let at = command.parent; at !== null && at.parent !== null; at = at.parent) words.unshift(at.name());
  return words.join(' ');
}

function argumentText(argument: Command['registeredArguments'][number]): string {
  const name = argument.name().toUpperCase();
  // An agent's arguments follow its name; other commands take a command of the user after `--`.
  if (argument.variadic) return argument.name() === 'argument' ? `[${name}...]` : `-- ${name}...`;
  return argument.required ? name : `[${name}]`;
}

/** The comment keeps the formatter from aligning the cells, so that a new row changes one line. */
function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  return `<!-- prettier-ignore -->\n${[headings, headings.map(() => '---'), ...rows].map(tableRow).join('')}`;
}

function tableRow(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |\n`;
}

function code(text: string): string {
  return `\`${text.replaceAll('|', '\\|')}\``;
}

/** Escapes dollar signs and angle brackets, which Markdown would interpret. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '\\<');
}
