import type { Operation } from '../model/connector.ts';
import { refusal, type Refusal } from '../model/refusal.ts';
import { err, ok, type Result } from '../model/result.ts';
import { isMethodOverrideHeader, methodOverridesOfQuery } from '../net/http/method_override.ts';

/**
 * Checks a request against its operation before any credential is looked up. The method identifies the operation, so neither
 * a header nor the query may name another one. An operation that only reads or needs an approval is not upgraded to a
 * connection that may do more. Refuses with `effect_not_allowed`; with `invalid_request` if a request that needs an approval
 * declares its content type twice, because servers could then read another body than the approved one.
 */
export function enforceOperation(
  operation: Operation,
  fields: readonly { readonly name: string }[],
  query: string | null = null,
): Result<void, Refusal> {
  if (methodOverridesOfQuery(operation.method, query).length > 0) {
    return refuse(operation, 'the query parameter _method can turn the request into another operation');
  }
  const names = fields.map(({ name }) => name.toLowerCase());
  const override = names.find((name) => isMethodOverrideHeader(name));
  if (override !== undefined) {
    return refuse(operation, `the header ${override} can turn the request into another operation`);
  }
  const upgradeFault = names.includes('upgrade') ? upgradeProblem(operation) : null;
  if (upgradeFault !== null) return refuse(operation, upgradeFault);
  if (operation.approval === 'required' && names.indexOf('content-type') !== names.lastIndexOf('content-type')) {
    return err(
      refusal('invalid_request', 'a request that needs an approval has one Content-Type header: send only one'),
    );
  }
  return ok(undefined);
}

function upgradeProblem({ effect, approval }: Operation): string | null {
  if (effect === 'read') return 'its effect is "read", and an upgraded connection is not limited to reading';
  if (approval === 'required')
    return 'an approval covers one request, and an upgraded connection is not limited to one';
  return null;
}

function refuse({ name }: Operation, why: string): Result<never, Refusal> {
  return err(refusal('effect_not_allowed', `the operation ${name} is refused: ${why}`));
}
