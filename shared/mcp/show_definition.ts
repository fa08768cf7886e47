import { z } from 'zod';
import { listHiddenCharacters, showHidden } from '../model/shown_text.ts';

/** The `_meta` key that lists the hidden characters made visible in a definition. */
export const HIDDEN_CHARACTERS_META = 'svc/hidden-characters';

const metaHolder = z.looseObject({ _meta: z.looseObject({}).optional().catch(undefined) });

/** The members with prose for people and models, at any depth; other members have a meaning for the server and are kept. */
const PROSE = new Set(['title', 'description']);

/**
 * A server's definition of a tool, prompt or resource with hidden characters in its prose escaped. Hidden text could give a
 * model instructions that no person sees. The characters found are listed in `_meta`.
 */
export function toShownDefinition<T extends object>(definition: T): T {
  const found = new Set<string>();
  const shown = toShownObject(definition, found);
  if (found.size === 0) return definition;
  const { _meta: meta } = metaHolder.parse(definition);
  return { ...definition, ...shown, _meta: { ...meta, [HIDDEN_CHARACTERS_META]: [...found] } };
}

function toShownObject(object: object, found: Set<string>): object {
  const entries = Object.entries(object).map(([key, member]): [string, unknown] => [
    key,
    toShownMember(key, member, found),
  ]);
  return Object.fromEntries(entries);
}

function toShownMember(key: string, member: unknown, found: Set<string>): unknown {
  if (typeof member === 'string') return PROSE.has(key) ? toShownText(member, found) : member;
  if (Array.isArray(member)) return member.map((item: unknown) => toShownMember('', item, found));
  return typeof member === 'object' && member !== null ? toShownObject(member, found) : member;
}

function toShownText(text: string, found: Set<string>): string {
  const hidden = listHiddenCharacters(text);
  if (hidden.length === 0) return text;
  for (const kind of hidden) found.add(kind);
  return showHidden(text);
}
