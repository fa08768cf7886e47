import SwaggerParser from '@apidevtools/swagger-parser';
import { parseDocument } from 'yaml';
import { err, ok, type Result } from '../../shared/model/result.ts';

const MAX_ALIASES = 1_000;

/**
 * Reads an OpenAPI 3 document (JSON or YAML) and resolves its internal references; circular references produce circular
 * objects. References to other files and URLs are refused, because the document may be untrusted.
 */
export async function readOpenApi(text: string): Promise<Result<unknown, string>> {
  const parsed = parseDocument(text, { uniqueKeys: true });
  const [broken] = parsed.errors;
  if (broken !== undefined) return err(`is neither JSON nor YAML: ${broken.message.split('\n')[0] ?? ''}`);
  const document: unknown = parsed.toJS({ maxAliasCount: MAX_ALIASES });
  if (!isOpenApi(document)) return err('is not an OpenAPI document: it has no "openapi"');
  if (!document.openapi.startsWith('3.'))
    return err(`is OpenAPI ${document.openapi.slice(0, 20)}: convert it to OpenAPI 3 first`);
  const foreign = externalReference(document, new Set());
  if (foreign !== null) return err(`refers to ${JSON.stringify(foreign.slice(0, 100))}: bundle it into one file first`);
  try {
    const options = { resolve: { external: false }, dereference: { circular: true } } as const;
    const dereferenced: unknown = await SwaggerParser.dereference(structuredClone(document), options);
    return ok(dereferenced);
  } catch (error) {
    return err(`cannot be read: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : 'unknown problem'}`);
  }
}

type OpenApiDocument = Exclude<Awaited<ReturnType<typeof SwaggerParser.parse>>, { readonly swagger: string }>;

/** Only the parts that are checked here; the rest is checked where it is used. */
function isOpenApi(document: unknown): document is OpenApiDocument {
  return (
    typeof document === 'object' && document !== null && 'openapi' in document && typeof document.openapi === 'string'
  );
}

function externalReference(value: unknown, seen: Set<object>): string | null {
  if (typeof value !== 'object' || value === null || seen.has(value)) return null;
  seen.add(value);
  for (const [key, member] of Object.entries(value)) {
    if (key === '$ref' && typeof member === 'string' && !member.startsWith('#')) return member;
    const found = externalReference(member, seen);
    if (found !== null) return found;
  }
  return null;
}
