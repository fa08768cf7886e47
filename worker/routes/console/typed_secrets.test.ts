import { describe, expect, test } from 'vitest';
import { clearArgument, clearHeader, clearQuery, clearVariable } from './typed_secrets.ts';

const REFERENCE = 'vault://mcp-servers/{id}';

describe('a secret typed into a configuration is removed', () => {
  test.each([
    ['API_KEY=abc', 'API_KEY'],
    ['GITHUB_TOKEN = "two words"', 'GITHUB_TOKEN'],
  ])('from the variable %s', (line, cleared) => {
    expect(clearVariable(line, {})?.line).toBe(cleared);
  });

  test.each([
    ['Authorization: Bearer abc', 'Authorization: Bearer {Authorization}'],
    ['X-Api-Key: abc', 'X-Api-Key: {X_Api_Key}'],
    ['Cookie: session=abc', 'Cookie: {Cookie}'],
  ])('from the header %s', (line, cleared) => {
    expect(clearHeader(line, {})?.line).toBe(cleared);
  });

  test('from the query of a URL, whose rest stays', () => {
    const url = 'https://mcp.example.com/mcp?region=eu&api_key=abc&token={TOKEN}';
    expect(clearQuery(url)).toEqual({
      line: 'https://mcp.example.com/mcp?region=eu&api_key={api_key}&token={TOKEN}',
      name: 'api_key',
    });
  });

  test.each([
    ['--api-key=abc', '', `--api-key=${REFERENCE}/API_KEY`],
    ['abc', '--token', `${REFERENCE}/TOKEN`],
  ])('from the argument %s after "%s"', (line, before, cleared) => {
    expect(clearArgument(line, before)?.line).toBe(cleared);
  });
});

describe('what is not a secret, or is a reference, stays', () => {
  test.each(['LOG_LEVEL=info', 'API_KEY', 'API_KEY=', `AUTH_TOKEN=Bearer ${REFERENCE}/TOKEN`])('%s', (line) => {
    expect(clearVariable(line, {})).toBeNull();
  });

  test('a value that was in the configuration before stays', () => {
    expect(clearVariable('API_KEY=abc', { API_KEY: 'abc' })).toBeNull();
    expect(clearVariable('API_KEY=" a"', { API_KEY: ' a' })).toBeNull();
    expect(clearHeader('X-Api-Key: abc', { 'X-Api-Key': 'abc' })).toBeNull();
    expect(clearVariable('API_KEY=other', { API_KEY: 'abc' })).not.toBeNull();
  });

  test.each(['X-Region: eu', 'Authorization: Bearer {TOKEN}', `X-Api-Key: ${REFERENCE}/KEY`])('%s', (line) => {
    expect(clearHeader(line, {})).toBeNull();
  });

  test.each([
    ['--region=eu', ''],
    ['--key=/path/of/a/file', ''],
    ['--verbose', '--token'],
    ['abc', 'token'],
    [`--token=${REFERENCE}/TOKEN`, ''],
  ])('the argument %s after "%s"', (line, before) => {
    expect(clearArgument(line, before)).toBeNull();
  });

  test('a URL without a secret', () => {
    expect(clearQuery('https://mcp.example.com/mcp?region=eu')).toBeNull();
  });
});
