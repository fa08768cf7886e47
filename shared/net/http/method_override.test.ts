import { describe, expect, test } from 'vitest';
import { isMethodOverrideHeader, mayNameMethod, methodOverridesOfQuery } from './method_override.ts';

describe('headers that override the method', () => {
  test.each([
    'x-http-method-override',
    'X-HTTP-Method-Override',
    'x-http-method',
    'x-method-override',
    'x_http_method_override',
    'X_HTTP-Method',
    'x.method.override',
  ])('%s', (name) => {
    expect(isMethodOverrideHeader(name)).toBe(true);
  });

  test.each(['x-http-methods', 'x-method', 'http-method-override', 'x-http-method-override-2', 'accept', 'method'])(
    'not %s',
    (name) => {
      expect(isMethodOverrideHeader(name)).toBe(false);
    },
  );
});

describe('methods named in a query', () => {
  test.each([
    '_method=DELETE',
    'a=1&_method=DELETE',
    'a=1;_method=DELETE',
    '%5fmethod=%44ELETE',
    '+_method=DELETE',
    '.method=DELETE',
    '_method%5B%5D=DELETE',
    '_METHOD=DELETE',
    '_method%00x=DELETE',
  ])('%s', (query) => {
    expect(methodOverridesOfQuery('POST', query)).toEqual(['DELETE']);
  });

  test('returns all of them, because servers use the first or the last', () => {
    expect(methodOverridesOfQuery('post', '_method=PUT&_method=delete')).toEqual(['PUT', 'delete']);
  });

  test.each([
    ['POST', null],
    ['POST', ''],
    ['POST', 'method=DELETE&x_method=DELETE&_methods=DELETE&q=_method'],
    ['GET', '_method=DELETE'],
  ])('returns none: %s %s', (method, query) => {
    expect(methodOverridesOfQuery(method, query)).toEqual([]);
  });
});

describe('mayNameMethod', () => {
  test.each([
    '_method=DELETE',
    'a=1&_method=DELETE',
    'a=1;_method=DELETE',
    '+_method=DELETE',
    '%5Fmethod=DELETE',
    '_%6dethod=DELETE',
    '%5f%4D%45%54%48%4F%44=DELETE',
    '.method=DELETE',
    '_method[]=DELETE',
    '--x\r\nContent-Disposition: form-data; name="_method"\r\n\r\nDELETE\r\n--x--',
    '--x\r\nContent-Disposition: form-data; name=_method\r\n\r\nDELETE\r\n--x--',
    '{"a": 1, "_method" : "DELETE"}',
    String.raw`{"\u005fmethod": "DELETE"}`,
    String.raw`{"\u005F\u006D\u0065\u0074\u0068\u006f\u0064": "DELETE"}`,
  ])('detects another method in %j', (body) => {
    expect(mayNameMethod('POST', body)).toBe(true);
    expect(mayNameMethod('PUT', body)).toBe(false);
  });

  test.each([
    '',
    'method=DELETE',
    'payment_method=card',
    '{"payment_method": "card", "method": "x"}',
    '_methods=1',
    'a=the _method',
    String.raw`{"text": "<input name=\\"_method\\" value=\\"put\\"> and {\\"_method\\": 1}"}`,
  ])('detects none in %j', (body) => {
    expect(mayNameMethod('POST', body)).toBe(false);
  });
});
