import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readRootManifest } from './npm_package.ts';

export const FORMULA = 'svc.rb';

/** Writes a formula of Homebrew for the npm package at this address, with its checksum. */
export function writeFormula(base: string, npmFile: string, sha256: string, out: string): string {
  const { description, license } = readRootManifest();
  const [short = ''] = description.split(':');
  const text = `class Svc < Formula
  desc ${quoted(short)}
  homepage ${quoted(base)}
  url ${quoted(`${base.replace(/\/$/, '')}/${npmFile}`)}
  sha256 ${quoted(sha256)}
${license === 'UNLICENSED' ? '' : `  license ${quoted(license)}\n`}
  depends_on "node"

  def install
    system "npm", "install", "--ignore-scripts", *std_npm_args
    bin.install_symlink Dir["#{libexec}/bin/*"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/svc --version")
  end
end
`;
  writeFileSync(join(out, FORMULA), text);
  return FORMULA;
}

/** A string of Ruby: in double quotes, `#{}` would be code. */
function quoted(text: string): string {
  return `"${text.replaceAll(/[\\"#]/g, String.raw`\$&`)}"`;
}
