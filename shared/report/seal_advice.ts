import { covers } from '../net/host_pattern.ts';
import { HOST_BINDING_FIELDS } from '../wire/host_binding.ts';
import { placeholdersOf, type BindingTemplate } from '../wire/binding_template.ts';
import { placeholderNames } from '../wire/placeholder.ts';
import type { SecretRecord } from '../wire/secrets.ts';

/** More suggestions for one credential would not help. */
const MOST_TEMPLATES = 3;

/** The flags of `svc binding add` with another name than their field. */
const OTHER_FLAGS: Readonly<Record<string, string>> = {
  credential_ref: 'credential',
  session_token_ref: 'session-token',
};

/** The `svc binding add` commands that would seal a credential; `host` is one that it was released for, if any. */
export function sealLines(
  secret: Pick<SecretRecord, 'path' | 'ref' | 'owner' | 'description'>,
  host: string | null,
  templates: readonly BindingTemplate[],
): readonly string[] {
  const fitting = findFittingTemplates(secret, host, templates);
  const end = ['--credential', secret.ref, ...(secret.owner === 'personal' ? [] : ['--owner', secret.owner])];
  if (fitting.length === 0) return [line([shellWord(host ?? '<host>'), '--scheme', 'bearer', ...end])];
  return fitting.map((template) => line([...templateWords(template), ...end]));
}

function line(words: readonly string[]): string {
  return ['svc', 'binding', 'add', ...words].join(' ');
}

/** A few templates: those for this host; else those whose names share the most words with the path, or with the description. */
export function findFittingTemplates(
  secret: Pick<SecretRecord, 'path' | 'description'>,
  host: string | null,
  templates: readonly BindingTemplate[],
): readonly BindingTemplate[] {
  return listFitting(secret, host, templates).slice(0, MOST_TEMPLATES);
}

function listFitting(
  { path, description }: Pick<SecretRecord, 'path' | 'description'>,
  host: string | null,
  templates: readonly BindingTemplate[],
): readonly BindingTemplate[] {
  const ofHost = host === null ? [] : templates.filter((template) => isOnHost(template, host));
  if (ofHost.length > 0) return ofHost;
  const byPath = findMostAlike(path, templates);
  return byPath.length > 0 || description === null ? byPath : findMostAlike(description, templates);
}

function isOnHost({ binding }: BindingTemplate, host: string): boolean {
  const pattern = binding['host'];
  return typeof pattern === 'string' && covers(pattern, host);
}

/** The first word of a template's name is the service, which must match. Shorter names come first. */
function findMostAlike(text: string, templates: readonly BindingTemplate[]): readonly BindingTemplate[] {
  const words = new Set(text.toLowerCase().split(/[^a-z0-9]+/));
  const scored = templates.flatMap((template) => {
    const own = template.name.split('-');
    return words.has(own[0] ?? '') ? [{ template, score: own.filter((word) => words.has(word)).length }] : [];
  });
  const best = Math.max(...scored.map(({ score }) => score));
  const found = scored.filter(({ score }) => score === best).map(({ template }) => template);
  return found.toSorted((a, b) => a.name.split('-').length - b.name.split('-').length);
}

/** The command for a template: its name, the host if that is open, and a flag for each open field. */
function templateWords(template: BindingTemplate): string[] {
  const fields = placeholdersOf(template).flatMap(({ name, fields: places }) =>
    places.map((field) => ({ name, field })),
  );
  const flags = fields
    .filter(({ field }) => field !== 'host' && field !== 'credential_ref')
    .flatMap(({ name, field }) => [`--${OTHER_FLAGS[field] ?? field.replaceAll('_', '-')}`, shellWord(`<${name}>`)]);
  return [...openHost(template), '--from', template.name, ...flags];
}

/** The host, if another field does not fill a placeholder in it. */
function openHost({ binding }: BindingTemplate): string[] {
  const host = binding['host'];
  if (typeof host !== 'string') return [];
  const open = placeholderNames(host).some((name) => !HOST_BINDING_FIELDS.includes(name.replaceAll('-', '_')));
  return open ? [shellWord(host)] : [];
}

function shellWord(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
