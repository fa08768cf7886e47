import type { Operation } from '../model/connector.ts';
import { refusal, type Refusal } from '../model/refusal.ts';
import { err, ok, type Result } from '../model/result.ts';
import { isMethodOverrideHeader, methodOverridesOfQuery } from '../net/method_override.ts';

/**
 * Checks a request against the operation it is, before any credential is looked up: its method is what identifies it, so
 * neither a header nor the query may name another one, and an operation that only reads is not upgraded to a connection that may do more. Refuses
 * with `effect_not_allowed`.
 */
export function enforceOperation(
  operation: Operation,
  fields: readonly { readonly name: string }[],
  query: string | null = null,
): Result<void, Refusal> {
  if (methodOverridesOfQuery(operation.method, query).length > 0) {
    return refused(operation, 'the query parameter _method can turn the request into another operation');
  }
  for (const field of fields) {
    const name = field.name.toLowerCase();
    if (isMethodOverrideHeader(name)) {
      return refused(operation, `the header ${name} can turn the request into another operation`);
    }
    if (name === 'upgrade' && operation.effect === 'read') {
      return refused(operation, 'its effect is "read", and an upgraded connection is not limited to reading');
    }
  }
  return ok(undefined);
}

function refused({ name }: Operation, why: string): Result<never, Refusal> {
  return err(refusal('effect_not_allowed', `the operation ${name} is not run: ${why}`));
}
