import { parseDocument } from 'yaml';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';

/** Aliases let a short file stand for a huge one. */
const MOST_ALIASED = 100;

/** The value of a YAML document, thus of JSON too, or one line for each problem. */
export function parseYaml(text: string): Result<unknown, readonly string[]> {
  const document = parseDocument(text, { uniqueKeys: true });
  if (document.errors.length > 0) return err(document.errors.map(({ message }) => toPrintable(firstLineOf(message))));
  try {
    return ok(document.toJS({ maxAliasCount: MOST_ALIASED }));
  } catch (error) {
    return err([error instanceof Error ? toPrintable(error.message) : 'cannot be read']);
  }
}

function firstLineOf(message: string): string {
  return message.split('\n')[0] ?? '';
}
