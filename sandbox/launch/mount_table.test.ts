import { expect, test } from 'vitest';
import { isWithin, MountTable } from './mount_table.ts';

const TABLE = new MountTable(
  [
    '27 1 8:1 / / rw - ext4 /dev/sda1 rw',
    '30 27 8:2 / /home rw - ext4 /dev/sda2 rw',
    '31 27 8:2 /u/.svc /srv/keys rw - ext4 /dev/sda2 rw',
    '32 27 8:2 /u /mnt/with\\040space/u rw - ext4 /dev/sda2 rw',
    '33 27 0:24 / /run rw - tmpfs tmpfs rw',
    '34 27 8:1 /data /over rw - ext4 /dev/sda1 rw',
    '35 27 8:2 /u/.svc/sidecar /over rw - ext4 /dev/sda2 rw',
    '',
    'no mount',
  ].join('\n'),
);

test.each([
  ['/home/u/.svc', [{ device: '8:2', path: '/u/.svc' }]],
  ['/home/u/.svc/sidecar', [{ device: '8:2', path: '/u/.svc/sidecar' }]],
  ['/srv/keys', [{ device: '8:2', path: '/u/.svc' }]],
  ['/srv/keys/vault.key', [{ device: '8:2', path: '/u/.svc/vault.key' }]],
  ['/mnt/with space/u/x', [{ device: '8:2', path: '/u/x' }]],
  ['/var/lib', [{ device: '8:1', path: '/var/lib' }]],
  ['/over', [{ device: '8:2', path: '/u/.svc/sidecar' }]],
])('%s is where it is mounted from', (path, places) => {
  const found = TABLE.listDevicePaths(path).map(({ device, path: on }) => ({ device, path: on }));
  expect(found.slice(0, 1)).toEqual(places);
});

test('a path includes the mounts below it', () => {
  const places = TABLE.listDevicePaths('/srv').map(({ device, path }) => `${device} ${path}`);
  expect(places).toEqual(['8:1 /srv', '8:2 /u/.svc']);
  expect(TABLE.listDevicePaths('/srvs')).toHaveLength(1);
});

test('places are compared by device and by whole segments', () => {
  const home = { device: '8:2', path: '/u/.svc' };
  expect(isWithin({ device: '8:2', path: '/u/.svc/a' }, home)).toBe(true);
  expect(isWithin({ device: '8:1', path: '/u/.svc/a' }, home)).toBe(false);
  expect(isWithin({ device: '8:2', path: '/u/.svc2' }, home)).toBe(false);
});
