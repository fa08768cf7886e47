import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import {
  fillTemplate,
  parseBindingTemplate,
  type BindingTemplate,
  type TemplatePlaceholder,
} from '../../shared/wire/binding_template.ts';
import { flagOf } from './binding_input.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { nearMatch } from '../../shared/model/near_match.ts';

const FOLDER = ['catalog', 'bindings'];

/** The templates of this checkout, by name. */
export function loadTemplates(root: string): readonly BindingTemplate[] {
  const folder = join(root, ...FOLDER);
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
  return files.toSorted().map((name) => loadTemplate(join(folder, name)));
}

function loadTemplate(path: string): BindingTemplate {
  const parsed = parseBindingTemplate(parse(readFileSync(path, 'utf8')));
  if (parsed.ok) return parsed.value;
  throw new CliError(EXIT.failed, `${path} is damaged: ${parsed.error.message}`, ['Get a complete checkout.']);
}

/** Finds a template by name; the error suggests the nearest name. */
export function findTemplate(root: string, name: string): BindingTemplate {
  const templates = loadTemplates(root);
  const found = templates.find((template) => template.name === name);
  if (found !== undefined) return found;
  const near = nearMatch(
    name,
    templates.map((template) => template.name),
  );
  const hint = near === null ? [] : [`Did you mean ${near}?`];
  throw new CliError(EXIT.usage, `there is no template ${JSON.stringify(name)}`, [
    ...hint,
    '`svc binding templates` lists them.',
  ]);
}

/** The template's binding, with the given fields taking precedence. */
export function fillFromTemplate(
  template: BindingTemplate,
  fields: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const filled = fillTemplate(template, fields);
  if (filled.ok) return { ...filled.value };
  const { placeholders } = filled.error;
  const names = placeholders.map(({ name }) => `<${name}>`).join(', ');
  const lines = placeholders.map((placeholder) => `<${placeholder.name}>: give ${flagFor(placeholder)}`);
  throw new CliError(EXIT.usage, `template ${template.name} needs ${names}`, lines);
}

/** The flag that fills a placeholder: the one with its name, else the flags of the fields that contain it. */
function flagFor({ name, fields }: TemplatePlaceholder): string {
  const own = name.replaceAll('-', '_');
  const named = flagOf(own);
  return named === own ? fields.map(flagOf).join(' or ') : named;
}
