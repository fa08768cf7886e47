import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeContainers } from '../containers/container_world.ts';
import { sampleOf } from '../support/full_counts.ts';
import { type ImageBench, openImageBench } from './agent_container.ts';

/** Folders and files as Fedora's package ca-certificates lays them out. */
const FEDORA = `mkdir -p /etc/pki/ca-trust/source/anchors /etc/pki/tls/certs /etc/pki/ca-trust/extracted/pem
mv /etc/ssl/certs/ca-certificates.crt /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem
rm -rf /etc/ssl
ln -s /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem /etc/pki/tls/certs/ca-bundle.crt
ln -s /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem /etc/pki/tls/cert.pem
mkdir /etc/ssl
ln -s /etc/pki/tls/certs /etc/ssl/certs`;

describeContainers('trust stores and programs of different systems', () => {
  let bench: ImageBench;
  beforeAll(async () => {
    bench = await openImageBench();
  });
  afterAll(() => bench.clear());

  const run = async (image: string, script: string, before: string): Promise<string> => {
    const done = await bench.start(image, ['--', 'sh', '-c', script], { before });
    if (done.code !== 0) throw new Error(`exit ${done.code}: ${done.stderr}`);
    return done.stdout.trim();
  };
  const mark = (): string => bench.caPem.trim().split('\n')[1] ?? '';

  it.each(['debian', 'busybox'] as const)('the layout of Fedora (%s)', async (name) => {
    const script =
      'cat /etc/pki/tls/certs/ca-bundle.crt; cat /etc/pki/ca-trust/source/anchors/*; readlink /etc/pki/tls/cert.pem';
    const told = await run(bench.images[name], script, FEDORA);
    expect(told.split(mark()).length - 1).toBe(2);
    expect(told).toMatch(/tls-ca-bundle\.pem$/);
    const check = await bench.start(bench.images[name], ['--check'], { before: FEDORA, ca: null });
    expect(check.stdout).toContain('layout=fedora\n');
  });

  it.each(sampleOf(['busybox', 'debian'] as const, 1))('a store without roots (%s)', async (name) => {
    const told = await run(
      bench.images[name],
      'cat "$SSL_CERT_FILE" /etc/ssl/certs/ca-certificates.crt',
      'rm -rf /etc/ssl; mkdir -p /etc/ssl/certs',
    );
    expect(told.split(mark()).length - 1).toBe(2);
  });

  it('programs that read no CA variable trust the CA', async () => {
    const script = `unset SSL_CERT_FILE; python3 -c 'import ssl; print(len(ssl.create_default_context().get_ca_certs()))'
      openssl verify -CApath /etc/ssl/certs /etc/svc/trust/ca.pem`;
    const done = await bench.start(bench.images.debian, ['--', 'sh', '-c', script]);
    expect(done.stdout).toContain('/etc/svc/trust/ca.pem: OK');
  });

  it('a JVM gets a copy of its own store with the CA, after its existing options', async () => {
    const done = await bench.start(
      bench.images.debianJava,
      [
        '--',
        'sh',
        '-c',
        'echo "$JAVA_TOOL_OPTIONS"; cd "$(dirname "$(readlink -f "$(command -v java)")")" && ./keytool -list -keystore /etc/svc/trust/java-cacerts -storepass changeit 2>/dev/null',
      ],
      {
        flags: ['--env', 'JAVA_TOOL_OPTIONS=-Dhttps.proxyPort=7422'],
      },
    );
    expect(done.stdout).toMatch(
      /^-Dhttps\.proxyPort=7422 -Djavax\.net\.ssl\.trustStore=\/etc\/svc\/trust\/java-cacerts /,
    );
    expect(done.stdout).toContain('svc-session-ca');
    expect(Number(/contains (\d+) entries/.exec(done.stdout)?.[1])).toBeGreaterThan(50);
  });

  it.each([
    ['runuser', 'rm /usr/bin/setpriv'],
    ['su', 'rm /usr/bin/setpriv /sbin/runuser /usr/sbin/chroot'],
  ])('changes the user with %s if there is nothing better', async (method, before) => {
    const check = await bench.start(bench.images.debian, ['--check'], { before, ca: null });
    expect(check.stdout).toContain(`drop=${method}\n`);
    const odd = ['a b', "'", '-n', 'two\nlines', '$(id)'];
    const done = await bench.start(bench.images.debian, ['--', 'sh', '-c', 'id -u; printf "<%s>" "$@"', 'x', ...odd], {
      before,
    });
    expect(done.stdout).toBe(`1000\n${odd.map((word) => `<${word}>`).join('')}`);
  });

  it('refuses an image without a program that changes the user', async () => {
    const before = 'rm /usr/bin/setpriv /sbin/runuser /usr/sbin/chroot /bin/su';
    const done = await bench.start(bench.images.debian, ['--', 'id'], { before });
    expect(done).toMatchObject({ code: 20, stdout: '' });
  });

  it('works where sh is bash', async () => {
    expect(await run(bench.images.debian, 'id -u', 'ln -sf bash /bin/sh')).toBe('1000');
  });

  it('keeps the supplementary groups of the user', async () => {
    expect(await run(bench.images.debian, 'id -G', 'groupadd --gid 4321 extra; usermod -aG extra agent')).toBe(
      '1000 4321',
    );
  });
});
