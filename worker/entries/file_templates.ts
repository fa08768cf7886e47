import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { type BindingTemplate, parseBindingTemplate } from '../../shared/wire/binding_template.ts';

const FOLDER = new URL('../../catalog/bindings/', import.meta.url);

/** The ready bindings of the checkout's catalog, by name. */
export function fileTemplates(): readonly BindingTemplate[] {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.yaml'));
  return files.toSorted().map((name) => readTemplate(readFileSync(new URL(name, FOLDER), 'utf8')));
}

/** Throws for an invalid one; a test checks the catalog against its schema. */
function readTemplate(text: string): BindingTemplate {
  const template = parseBindingTemplate(parse(text));
  if (template.ok) return template.value;
  throw new Error(`a template of the catalog is damaged: ${template.error.message}`);
}
