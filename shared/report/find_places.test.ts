import { describe, expect, test } from 'vitest';
import { findPlaces, findRequest, type Place } from './find_places.ts';

const place = (name: string, also = '', kind: Place['kind'] = 'binding'): Place => ({
  kind,
  name,
  also,
  path: `/${name}`,
});
const names = (text: string, places: readonly Place[], limit = 10) =>
  findPlaces(text, places, limit).map(({ name }) => name);

describe('a search for places', () => {
  const places = [
    place('legit.example'),
    place('api.github.com'),
    place('github.com'),
    place('git'),
    place('other.example', 'for git over HTTPS'),
  ];

  test('puts the whole name first, then its beginning, a word of it, a part of it, and what else is known', () => {
    expect(names('git', places)).toEqual(['git', 'github.com', 'api.github.com', 'legit.example', 'other.example']);
  });

  test('needs every word, in any case and order', () => {
    expect(names('COM api', places)).toEqual(['api.github.com']);
    expect(names('api nowhere', places)).toEqual([]);
  });

  test('without words gives all in their order, up to the limit', () => {
    expect(names('  ', places, 2)).toEqual(['legit.example', 'api.github.com']);
  });

  test('takes no character as a pattern', () => {
    expect(names('.*', places)).toEqual([]);
  });
});

describe('a pasted request', () => {
  test.each([
    ['https://api.github.com/user', 'GET', 'https://api.github.com/user'],
    [' post https://api.github.com/user ', 'POST', 'https://api.github.com/user'],
    ['https://user:token@api.example.test/x?token=1#part', 'GET', 'https://api.example.test/x'],
    ['https://api.example.test:8443', 'GET', 'https://api.example.test:8443/'],
  ])('%s', (text, method, url) => {
    expect(findRequest(text)).toEqual({ method, url });
  });

  test.each(['http://api.example.test/', 'github', 'https://', 'https://a b', 'brew https://api.example.test/'])(
    '%s is none',
    (text) => {
      expect(findRequest(text)).toBeNull();
    },
  );
});
