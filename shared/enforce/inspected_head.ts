import { isMethodOverrideHeader } from '../net/http/method_override.ts';

/** A request whose body is inspected, without the body. */
export interface InspectedRequest {
  readonly method: string;
  /** Without the `?`; null when there is none. */
  readonly query: string | null;
  /** Names are in lower case. */
  readonly fields: readonly { readonly name: string; readonly value: string }[];
  readonly hasBody: boolean;
}

/** Why the head of a request could make a server do something else than its inspected body says; null if it could not. */
export function findHeadFault({ fields }: InspectedRequest, inspected: string): string | null {
  if (fields.some(({ name }) => name === 'upgrade'))
    return `an upgraded connection carries ${inspected} that are not inspected`;
  const override = fields.find(({ name }) => isMethodOverrideHeader(name));
  return override === undefined ? null : `the header ${override.name} can turn it into another request`;
}

/** Why a server could read another body than the inspected one; null if it could not. `type` is the Content-Type it must have. */
export function findBodyFault({ fields }: InspectedRequest, type: RegExp): string | null {
  if (fields.some(({ name }) => name === 'content-encoding')) return 'its body is encoded: send it unencoded';
  const types = fields.filter(({ name }) => name === 'content-type').map(({ value }) => value);
  return types.length === 1 && type.test(types[0] ?? '')
    ? null
    : 'its body has to be one JSON object in UTF-8, and its only Content-Type application/json';
}
