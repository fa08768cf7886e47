import type { z } from 'zod';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import type { AppContext } from '../http/app_env.ts';
import { invalidInput } from '../http/error_reply.ts';

/** The query of a call that a browser makes, by the schema that the API's description shows. What it does not name is left out. */
export function queryOf<T>(c: AppContext, schema: z.ZodType<T>): Result<T, ApiError> {
  const parsed = schema.safeParse(c.req.query());
  return parsed.success ? ok(parsed.data) : err(invalidInput('query', parsed.error));
}
