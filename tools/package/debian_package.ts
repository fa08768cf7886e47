import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readRootManifest } from './npm_package.ts';
import { addRuntime, runtimeNotices } from './portable_archive.ts';
import { writeReleaseFile } from './release_file.ts';
import { listAll, settleFiles, SOURCE_DATE } from './settle_files.ts';

/** The name of the package's file. */
export const debianFileName = (): string => `svc_${readRootManifest().version}_amd64.deb`;

/**
 * Builds the Debian package from the npm package's folder. It brings its Node, which Debian has too old, and a unit for the control
 * plane that nothing starts by itself. It has no maintainer scripts, so nothing of it runs as root at the installation.
 */
export function buildDebianPackage(npmFolder: string, work: string, out: string, signer: string | null): string {
  const home = join(work, 'usr/lib/svc');
  cpSync(npmFolder, home, { recursive: true });
  addRuntime(home);
  writeReleaseFile(home, 'debian', signer);
  put(work, 'usr/lib/systemd/system/svc-control@.service', unit());
  mkdirSync(join(work, 'usr/bin'), { recursive: true });
  symlinkSync('../lib/svc/bin/svc', join(work, 'usr/bin/svc'));
  put(work, 'usr/share/doc/svc/copyright', runtimeNotices());
  put(work, 'DEBIAN/control', control(installedKilobytes(work)));
  settleFiles(work);
  const file = join(out, debianFileName());
  // Without threads, whose number the bytes would depend on.
  execFileSync('dpkg-deb', ['--root-owner-group', '--threads-max=1', '-Zzstd', '-z10', '--build', work, file], {
    env: { ...process.env, SOURCE_DATE_EPOCH: String(SOURCE_DATE) },
  });
  return debianFileName();
}

function put(work: string, path: string, text: string): void {
  mkdirSync(dirname(join(work, path)), { recursive: true });
  writeFileSync(join(work, path), text);
}

function control(kilobytes: number): string {
  const { version, description } = readRootManifest();
  return `${[
    'Package: svc',
    `Version: ${version}`,
    'Architecture: amd64',
    'Maintainer: svc',
    `Installed-Size: ${kilobytes}`,
    'Section: net',
    'Priority: optional',
    'Depends: libc6 (>= 2.28), libstdc++6, ca-certificates',
    'Recommends: bubblewrap',
    `Description: ${description.split(':')[0]}`,
    ` ${description}`,
  ].join('\n')}\n`;
}

/** The unit of docs/deploy.md, for a user that systemd makes for it. */
function unit(): string {
  return `[Unit]
Description=svc control plane on port %i
Documentation=file:/usr/share/doc/svc
After=network-online.target
Wants=network-online.target

[Service]
DynamicUser=yes
StateDirectory=svc-control
EnvironmentFile=/etc/svc/control.env
ExecStart=/usr/lib/svc/node_modules/.bin/node /usr/lib/svc/worker/entries/node.js --home %S/svc-control --port %i
Restart=always
TimeoutStopSec=20
NoNewPrivileges=yes
CapabilityBoundingSet=
PrivateDevices=yes
ProtectHome=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
SystemCallArchitectures=native

[Install]
WantedBy=multi-user.target
`;
}

function installedKilobytes(work: string): number {
  const files = listAll(work).filter((path) => statSync(path).isFile());
  return Math.ceil(files.reduce((sum, path) => sum + statSync(path).size, 0) / 1024);
}
