import type { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { jsonCostProblem } from '../../shared/wire/json_scan.ts';
import { fieldProblems } from '../../shared/wire/errors.ts';
import { localError, type LocalError } from './local_error.ts';

/** The checked JSON body of a request; an empty body is an empty object. */
export async function inputOf<T extends z.ZodType>(
  request: Request,
  schema: T,
): Promise<Result<z.output<T>, LocalError>> {
  const text = await request.text();
  const cost = jsonCostProblem(text);
  if (cost !== null) return err(localError('invalid_json', `The body ${cost}.`));
  let json: unknown;
  try {
    json = text === '' ? {} : JSON.parse(text);
  } catch {
    return err(localError('invalid_json', 'The body is not JSON.'));
  }
  return checkInput(schema, json);
}

/** The parsed input, or its first problem with all problems as details. */
export function checkInput<T extends z.ZodType>(schema: T, input: unknown): Result<z.output<T>, LocalError> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return ok(parsed.data);
  const fields = fieldProblems(parsed.error);
  const [first] = fields;
  return err(
    localError('invalid_input', `${first?.field || 'The body'}: ${first?.message ?? 'is not valid'}`, { fields }),
  );
}
