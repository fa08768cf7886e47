import { z } from 'zod';
import { listHiddenCharacters, showHidden } from '../../shared/model/shown_text.ts';

/** The `_meta` key that lists the hidden characters made visible in a definition. */
export const HIDDEN_CHARACTERS_META = 'svc/hidden-characters';

const metaHolder = z.looseObject({ _meta: z.looseObject({}).optional().catch(undefined) });

/** The members with prose for people and models, at any depth; other members have a meaning for the server and are kept. */
const PROSE = new Set(['title', 'description']);

/**
 * A server's definition of a tool, prompt or resource with hidden characters in its prose escaped. Hidden text could give a
 * model instructions that no person sees. The characters found are listed in `_meta`.
 */
export function shownDefinition<T extends object>(definition: T): T {
  const found = new Set<string>();
  const shown = shownObject(definition, found);
  if (found.size === 0) return definition;
  const { _meta: meta } = metaHolder.parse(definition);
  return { ...definition, ...shown, _meta: { ...meta, [HIDDEN_CHARACTERS_META]: [...found] } };
}

function shownObject(object: object, found: Set<string>): object {
  const entries = Object.entries(object).map(([key, member]): [string, unknown] => [
    key,
    shownMember(key, member, found),
  ]);
  return Object.fromEntries(entries);
}

function shownMember(key: string, member: unknown, found: Set<string>): unknown {
  if (typeof member === 'string') return PROSE.has(key) ? shownText(member, found) : member;
  if (Array.isArray(member)) return member.map((item: unknown) => shownMember('', item, found));
  return typeof member === 'object' && member !== null ? shownObject(member, found) : member;
}

function shownText(text: string, found: Set<string>): string {
  const hidden = listHiddenCharacters(text);
  if (hidden.length === 0) return text;
  for (const kind of hidden) found.add(kind);
  return showHidden(text);
}
