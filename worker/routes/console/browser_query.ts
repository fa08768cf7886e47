import type { z } from 'zod';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import type { AppContext } from '../http/app_env.ts';
import { invalidInput } from '../http/error_reply.ts';

/** Parses the query of a browser's call with the schema of the OpenAPI document. Unknown parameters are ignored. */
export function queryOf<T>(c: AppContext, schema: z.ZodType<T>): Result<T, ApiError> {
  const parsed = schema.safeParse(c.req.query());
  return parsed.success ? ok(parsed.data) : err(invalidInput('query', parsed.error));
}
