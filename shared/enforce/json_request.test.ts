import { describe, expect, test } from 'vitest';
import type { InspectedRequest } from './inspected_head.ts';
import { enforceJsonRequest } from './json_request.ts';

const POINTERS = ['/refund/at_amount'];
const JSON_FIELD = { name: 'content-type', value: 'application/json' };

function fault(changes: Partial<InspectedRequest>): string | null {
  const request = { method: 'POST', query: null, fields: [JSON_FIELD], hasBody: true, ...changes };
  const checked = enforceJsonRequest(request, POINTERS);
  return checked.ok ? null : `${checked.error.reason}: ${checked.error.message}`;
}

describe('a request whose JSON body decides', () => {
  test.each([
    [{}],
    [{ fields: [{ name: 'content-type', value: 'application/json; charset=utf-8' }] }],
    [{ fields: [{ name: 'content-type', value: 'application/json;charset="UTF-8"' }] }],
    [{ fields: [], hasBody: false }],
    [{ query: 'page=2&amounts=3' }],
  ])('is read: %j', (changes) => {
    expect(fault(changes)).toBeNull();
  });

  test.each([
    [{ fields: [] }, 'its body has to be one JSON object'],
    [{ fields: [{ name: 'content-type', value: 'text/plain' }] }, 'its body has to be'],
    [{ fields: [{ name: 'content-type', value: 'application/x-www-form-urlencoded' }] }, 'its body has to be'],
    [{ fields: [{ name: 'content-type', value: 'application/json; charset=utf-16' }] }, 'its body has to be'],
    [{ fields: [{ name: 'content-type', value: 'application/json, text/plain' }] }, 'its body has to be'],
    // Servers that do not know these ignore the body.
    [{ fields: [{ name: 'content-type', value: 'application/vnd.api+json' }] }, 'its body has to be'],
    [{ fields: [{ name: 'content-type', value: 'Application/JSON' }] }, 'its body has to be'],
    [{ fields: [{ name: 'content-type', value: 'application/json; charset="utf-8' }] }, 'its body has to be'],
    [{ fields: [{ name: 'content-type', value: 'application/json; charset=utf-8"' }] }, 'its body has to be'],
    [{ fields: [{ name: 'content-type', value: 'application/json\t; charset=utf-8' }] }, 'its body has to be'],
    [{ fields: [JSON_FIELD, JSON_FIELD] }, 'its body has to be'],
    [{ fields: [JSON_FIELD, { name: 'content-encoding', value: 'gzip' }] }, 'its body is encoded'],
    [{ fields: [JSON_FIELD, { name: 'upgrade', value: 'websocket' }] }, 'an upgraded connection'],
    [{ fields: [JSON_FIELD, { name: 'x-http-method-override', value: 'PUT' }] }, 'the header x-http-method-override'],
    [{ query: '_method=PUT' }, 'the query parameter _method'],
    [{ query: 'at_amount=1' }, 'servers may read /refund/at_amount from its query'],
    [{ query: 'x=1;atAmount=1' }, 'servers may read /refund/at_amount from its query'],
    [{ query: 'refund%5Bat_amount%5D=1' }, 'servers may read'],
    [{ query: 'Refund.At-Amount=1', hasBody: false, fields: [] }, 'servers may read'],
    [{ query: 'refund=x' }, 'servers may read'],
    [{ query: 'at_amount[0]=1' }, 'servers may read'],
    [{ query: 'at_amount%5B%5D%5B0%5D=1' }, 'servers may read'],
    [{ query: 'at_amount.0=1' }, 'servers may read'],
    [{ query: 'at_amount%00x=1' }, 'servers may read'],
    [{ query: 'refund[at_amount][0]=1' }, 'servers may read'],
  ])('is refused, because a server could read it in another way: %j', (changes, message) => {
    expect(fault(changes)).toContain(`json_unreadable: the request is refused: ${message}`);
  });
});
