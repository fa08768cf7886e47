import { z } from 'zod';
import { listHiddenCharacters, showHidden } from '../../shared/model/shown_text.ts';

/** Where a definition says which hidden characters were made visible in it. */
export const HIDDEN_CHARACTERS_META = 'svc/hidden-characters';

const metaHolder = z.looseObject({ _meta: z.looseObject({}).optional().catch(undefined) });

/** The members that are written for people and models, wherever they stand; any other one means something to the server. */
const PROSE = new Set(['title', 'description']);

/**
 * What a server says of a tool, a prompt or a resource, with the characters that nobody sees written out in its prose: such
 * text is read by a model, and may say to it what no person was shown. What was found is told in `_meta`.
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
