import { expect, test } from 'vitest';
import { remoteUrlProblem } from './remote_url.ts';

test.each([
  ['https://mcp.example.com/mcp', true],
  ['https://mcp.example.com:8443/mcp', true],
  ['http://mcp.example.com/mcp', false],
  ['http://10.0.0.1/mcp', false],
  ['http://127.0.0.1.evil.example/mcp', false],
  ['http://localhost.evil.example/mcp', false],
  ['https://user:pass@mcp.example.com/', false],
  ['ftp://mcp.example.com/', false],
  ['file:///etc/passwd', false],
  ['nonsense', false],
  [null, false],
])('for any control plane %s: %s', (url, may) => {
  expect(remoteUrlProblem(url, false) === null).toBe(may);
});

test.each(['http://127.0.0.1:3000/mcp', 'http://localhost:3000/mcp', 'http://[::1]:3000/mcp', 'http://127.9.9.9/'])(
  'allows %s only if the control plane is local',
  (url) => {
    expect(remoteUrlProblem(url, true)).toBeNull();
    expect(remoteUrlProblem(url, false)).toContain('http');
  },
);
