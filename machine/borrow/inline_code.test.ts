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
  ['/usr/bin/flock /tmp/l -c tool', '/usr/bin/flock', '-c'],
  ['/usr/bin/flock -w 5 -n /tmp/l sh -c tool', 'sh', '-c'],
  ['/usr/bin/script -qc tool /tmp/log', '/usr/bin/script', '-q'],
  ['/usr/bin/script /tmp/log --command=tool', '/usr/bin/script', '--command'],
  ['/usr/bin/script -q /dev/null /bin/sh -c tool', '/bin/sh', '-c'],
  ['/bin/su -c tool', '/bin/su', '-c'],
  ['/bin/su -s /bin/sh bob -c tool', '/bin/su', '-c'],
  ['/bin/su -m -c tool', '/bin/su', '-c'],
  ['/bin/su bob -- -c tool', '/bin/su', '-c'],
  ['/sbin/runuser bob -c tool', '/sbin/runuser', '-c'],
  ['/sbin/runuser -u bob -- sh -c tool', 'sh', '-c'],
  ['/usr/bin/awk BEGIN{system("tool")}', '/usr/bin/awk', '(its text)'],
  ['/usr/bin/gawk -F : BEGIN{system("tool")} -f /opt/x.awk', '/usr/bin/gawk', '(its text)'],
  ['/usr/bin/gawk -e BEGIN{system("tool")}', '/usr/bin/gawk', '-e'],
  ['/usr/bin/nice awk BEGIN{system("tool")}', 'awk', '(its text)'],
  ['/bin/busybox awk BEGIN{system("tool")}', '/bin/busybox', '(its text)'],
  ['/usr/bin/expect -c tool', '/usr/bin/expect', '-c'],
  ['/usr/bin/node --import=data:text/javascript,code /opt/tool.mjs', '/usr/bin/node', '--import'],
  ['/usr/bin/node --import data:text/javascript,code /opt/tool.mjs', '/usr/bin/node', 'data'],
  ['/usr/bin/deno run -A data:text/javascript,code', '/usr/bin/deno', 'data'],
  ['/usr/bin/node inspect -e code', '/usr/bin/node', '-e'],
  ['/usr/bin/python3 -m timeit code', '/usr/bin/python3', '-m'],
  ['/usr/bin/bun exec tool', '/usr/bin/bun', 'exec'],
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
  '/usr/bin/node --no-warnings /opt/tool.mjs -e staging',
  '/usr/bin/deno run -A /opt/x.ts eval',
  '/usr/bin/python3 -X dev /opt/tool.py -c config',
  '/usr/bin/python3 -m tool -c config',
  '/bin/bash --norc -o pipefail /opt/tool.sh -c config',
  '/usr/bin/pwsh -NoProfile -ExecutionPolicy Bypass -File /opt/tool.ps1 -Config x',
  '/usr/bin/flock -n /tmp/l /opt/tool -c config',
  '/sbin/runuser -u bob -- /opt/tool -c config',
  '/usr/bin/gawk -f /opt/tool.awk /opt/data',
  '/usr/bin/expect -f /opt/tool.exp -c config',
  '/usr/bin/op read op://vault/item/field',
])('%s is not', (line) => {
  expect(find(line)).toBeNull();
});
