import { expect, test } from 'vitest';
import { findInlineCode } from './inline_code.ts';

const find = (line: string) => {
  const [program = '', ...args] = line.split(' ');
  return findInlineCode(program, args);
};

test.each([
  ['/bin/sh -c tool', '/bin/sh', '-c'],
  ['/bin/bash -o pipefail -lc tool', '/bin/bash', '-l'],
  ['/bin/bash --norc -c tool', '/bin/bash', '-c'],
  ['/usr/bin/fish --init-command=tool', '/usr/bin/fish', '--init'],
  ['/bin/busybox sh -c tool', '/bin/busybox', '-c'],
  ['/usr/bin/env A=b sh -c tool', 'sh', '-c'],
  ['/usr/bin/env -S sh', '/usr/bin/env', '-S'],
  ['/usr/bin/nice -n 5 /usr/bin/python3 -c code', '/usr/bin/python3', '-c'],
  ['/usr/bin/python3.12 -uc code', '/usr/bin/python3.12', '-u'],
  ['/usr/bin/node --import /opt/hook.mjs -e code', '/usr/bin/node', '-e'],
  ['/usr/bin/node --eval=code', '/usr/bin/node', '--eval'],
  ['/usr/bin/deno eval code', '/usr/bin/deno', 'eval'],
  ['/usr/bin/perl -MJSON -ne code', '/usr/bin/perl', '-n'],
  ['/usr/bin/ruby -e code', '/usr/bin/ruby', '-e'],
  ['/usr/bin/php -r code', '/usr/bin/php', '-r'],
  ['/usr/bin/osascript -e code', '/usr/bin/osascript', '-e'],
  ['/usr/bin/pwsh -Command code', '/usr/bin/pwsh', '-C'],
])('%s is told its code by an argument', (line, program, option) => {
  expect(find(line)).toEqual({ program, option });
});

test.each([
  '/usr/bin/gh auth token -c',
  '/usr/bin/aws configure export-credentials --profile e',
  '/bin/sh /opt/tool.sh -c config',
  '/bin/bash -e /opt/tool.sh',
  '/usr/bin/python3 -E /opt/tool.py -c config',
  '/usr/bin/python3 -Wc::x /opt/tool.py',
  '/usr/bin/node --import=/opt/hook.mjs /opt/tool.mjs -e staging',
  '/usr/bin/perl -Mre /opt/tool.pl',
  '/usr/bin/env A=b /opt/tool get',
  '/usr/bin/op read op://vault/item/field',
])('%s is not', (line) => {
  expect(find(line)).toBeNull();
});
