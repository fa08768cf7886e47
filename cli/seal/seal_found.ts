import { isStandIn, serviceOfShape } from '../../shared/model/credential_shapes.ts';
import { formatVaultReference } from '../../shared/model/vault_path.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { HostBindingRecord } from '../../shared/wire/host_binding.ts';
import { MAX_SECRET_BYTES } from '../../shared/model/secret.ts';
import type { SealedService } from '../../shared/wire/sealed_service.ts';
import { listAllBindings } from '../bindings/find_binding.ts';
import { loadTemplates } from '../bindings/binding_templates.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { knownPlaceholders, findStoredReferences } from '../launch/screen_environment.ts';
import { askLine, askOrStop, isYes, StoppedError } from '../terminal/ask.ts';
import { credentialFiles, isInside, readPlace, type CredentialFile } from './credential_places.ts';
import {
  findCredentials,
  MAX_FOUND,
  type FileFormat,
  type FoundCredential,
  type KnownNames,
} from './find_credentials.ts';
import { rewriteFile } from './rewrite_file.ts';
import { reportSealed, sealService, type SealOptions } from './seal_credential.ts';

/** A credential on this machine. */
interface Finding {
  /** The name for `svc seal`; null if the catalog has no service for it. */
  readonly service: string | null;
  readonly value: string;
  /** A variable's name, a key or a host. */
  readonly name: string;
  /** Null for the environment. */
  readonly file: (CredentialFile & { readonly text: string; readonly credential: FoundCredential }) | null;
}

/** What a search has found, and the files that it left alone. */
interface Search {
  readonly findings: readonly Finding[];
  readonly left: readonly { readonly path: string; readonly why: string }[];
}

/** Where to search. */
export type SearchContext = Pick<CliContext, 'env' | 'userHome' | 'workingDirectory' | 'root'>;

/** Looks for credentials in the environment and in the files in which they are usual. */
export async function searchCredentials(context: SearchContext, services: readonly SealedService[]): Promise<Search> {
  const names = knownNames(context.root, services);
  const findings: Finding[] = environmentFindings(context, names);
  const left: { path: string; why: string }[] = [];
  for (const file of credentialFiles(context)) {
    const read = await readPlace(file.path);
    if (read === null) continue;
    const base = file.origin === 'home' ? context.userHome : context.workingDirectory;
    if (read.kind === 'left') left.push({ path: file.path, why: read.why });
    else if (!(await isInside(base, file.path)))
      left.push({ path: file.path, why: 'is in a folder that is a symbolic link' });
    else {
      const { text } = read;
      const credentials = findCredentials(file.format, text, names);
      if (credentials.length === MAX_FOUND) left.push({ path: file.path, why: `beyond its first ${MAX_FOUND}` });
      for (const credential of credentials) {
        const { service, value, name } = credential;
        if (!fitsVault(value)) continue;
        const known = services.some((each) => each.name === service) ? service : null;
        findings.push({ service: known, value, name, file: { ...file, text, credential } });
      }
    }
  }
  return { findings, left };
}

/** A placeholder may have the shape of a credential, so that a client accepts it. It is none. */
export function withoutPlaceholders(findings: readonly Finding[], placeholders: readonly string[]): readonly Finding[] {
  return findings.filter(({ value }) => !placeholders.includes(value));
}

/** A larger value cannot be stored. */
function fitsVault(value: string): boolean {
  return Buffer.byteLength(value) <= MAX_SECRET_BYTES;
}

function environmentFindings(context: SearchContext, names: KnownNames): Finding[] {
  return Object.entries(context.env).flatMap(([name, value]) => {
    if (value === undefined || value.length < 8 || isStandIn(value) || !fitsVault(value)) return [];
    const service = serviceOfShape(value) ?? names.serviceOfVariable(name);
    return service === null ? [] : [{ service, value, name, file: null }];
  });
}

function knownNames(root: string, services: readonly SealedService[]): KnownNames {
  const templates = loadTemplates(root);
  const hostsOf = ({ bindings }: SealedService): readonly unknown[] =>
    bindings.map(({ template }) => templates.find((each) => each.name === template)?.binding['host']);
  return {
    serviceOfVariable: (name) => services.find(({ variables }) => variables.includes(name))?.name ?? null,
    serviceOfHost: (host) => services.find((service) => hostsOf(service).includes(host.toLowerCase()))?.name ?? null,
  };
}

/** `svc seal` without a name. Only at a terminal it changes something, and each change is confirmed by itself. */
export async function sealFound(call: Call<SealOptions>, services: readonly SealedService[]): Promise<undefined> {
  const { context, print, options } = call;
  if ([options.as, options.from, options.file, options.stdin, options.yes].some((option) => option !== undefined)) {
    throw new CliError(EXIT.usage, 'these options belong to one service: svc seal SERVICE ...', [
      '`svc seal` alone looks for credentials on this machine, and asks about each.',
    ]);
  }
  const searched = await searchCredentials(context, services);
  const findings = withoutPlaceholders(searched.findings, await knownPlaceholders(call));
  const { left } = searched;
  const references = await findStoredReferences(
    call,
    findings.map(({ value }, index) => ({ name: String(index), value })),
  );
  const rows = findings.map((finding, index) => ({
    ...describe(finding),
    stored: references.get(String(index)) ?? null,
  }));
  print.rows(
    { items: rows, left },
    rows,
    [
      { title: '#', cell: (row) => String(rows.indexOf(row) + 1) },
      { title: 'SERVICE', cell: (row) => row.service ?? '-' },
      { title: 'NAME', cell: (row) => row.name },
      { title: 'WHERE', cell: (row) => (row.line === null ? row.where : `${row.where}:${row.line}`) },
      { title: 'STORED AS', cell: (row) => row.stored ?? '-' },
    ],
    'No credential was found in the environment and the usual files.',
  );
  for (const { path, why } of left) print.note(`Not searched: ${toPrintable(path)} ${why}`);
  if (print.json || findings.length === 0) return undefined;
  if (!context.interactive) {
    print.note('Nothing was changed: this asks at a terminal. By name: svc seal SERVICE --from VARIABLE, or --stdin');
    return undefined;
  }
  const chosen = await askWhich(context, findings);
  const values = new Set(chosen.map(({ value }) => value));
  /** What has been dealt with: its only other copy may be gone, so that no second value may take its place. */
  const taken = new Set<string>();
  for (const value of values) {
    const stored = references.get(String(findings.findIndex((finding) => finding.value === value)));
    const same = chosen.filter((finding) => finding.value === value);
    const reference = stored ?? (await sealOne(call, services, same, taken));
    if (reference === null) continue;
    taken.add(reference);
    await offerReplacements(call, same, { reference, names: knownNames(context.root, services) });
  }
  return undefined;
}

/** A finding without its value. */
function describe({ service, name, file }: Finding) {
  const where = file === null ? 'environment' : file.path;
  return { service, name, where, line: file?.credential.line ?? null, origin: file?.origin ?? 'environment' };
}

async function askWhich(context: CliContext, findings: readonly Finding[]): Promise<readonly Finding[]> {
  const answer = (await askLine(context, 'Seal which? Numbers such as 1,3, or all; nothing: none. ')) ?? '';
  if (/^\s*all\s*$/i.test(answer)) return findings;
  const numbers = answer.split(/[\s,]+/).filter((word) => /^\d{1,4}$/.test(word));
  return findings.filter((_finding, index) => numbers.includes(String(index + 1)));
}

/** Seals one value and returns its reference; null if that was refused or failed, so that its files stay as they are. */
async function sealOne(
  call: Call<SealOptions>,
  services: readonly SealedService[],
  same: readonly Finding[],
  taken: ReadonlySet<string>,
): Promise<string | null> {
  const [first] = same;
  const service = services.find(({ name }) => name === first?.service);
  if (first === undefined || service === undefined) {
    call.print.warn(`${first?.name ?? 'it'}: no service of the catalog is known for it: svc secret set PATH stores it`);
    return null;
  }
  if (taken.has(formatVaultReference(service.secret))) {
    call.print.warn(
      `${first.name}: another ${service.title} credential has just been dealt with, and this one would replace it`,
    );
    call.print.note(`  To store both, under a path and for a host of its own: svc seal ${service.name} --as PATH`);
    return null;
  }
  // A file of this folder may have been written by somebody else, so it does not choose the host that gets a credential.
  const own = same.flatMap(({ file }) => (file?.origin === 'home' ? [file.credential.values] : []));
  const values = Object.assign({}, ...own);
  const isForeign = same.every(({ file }) => file?.origin === 'folder');
  const from = `${service.title}: ${first.name} is from this folder, which somebody else may have written.`;
  const confirm = async (hosts: readonly string[]): Promise<void> => {
    if (!isForeign) return;
    const question = `${from} Seal it for ${hosts.join(', ')}? [y/N] `;
    if (isYes(await askOrStop(call.context, toPrintable(question)))) return;
    throw new CliError(EXIT.failed, 'nothing was changed');
  };
  try {
    // Each replacement of a stored value is confirmed by itself, whatever was said for all.
    const asked = { ...call, options: { ...call.options, yes: false } };
    const sealed = await sealService(asked, service, {
      values,
      confirm,
      readValue: () => Promise.resolve(first.value),
    });
    reportSealed(call, service, sealed);
    return sealed.secret.ref;
  } catch (error) {
    if (!(error instanceof CliError) || error instanceof StoppedError) throw error;
    call.print.warn(`${service.title} was not sealed: ${error.message}`);
    for (const fix of error.fixes) call.print.note(`  ${fix}`);
    return null;
  }
}

/** Offers to take a sealed credential out of each file; a variable is the shell's, so it is only named. */
async function offerReplacements(
  call: Call<SealOptions>,
  same: readonly Finding[],
  { reference, names }: { readonly reference: string; readonly names: KnownNames },
): Promise<void> {
  const bindings = await listAllBindings(controlClient(call.context, call.options));
  const bound = bindings.filter((binding) => binding.credential_ref === reference);
  for (const { file, name, value } of same) {
    if (file === null) {
      call.print.note(`${name} is still set in this shell: unset it, also where your shell's profile sets it.`);
    } else {
      await offerReplacement(call, { path: file.path, value, placeholder: placeholderFor(bound, name), names });
    }
  }
}

/** Recognised as a placeholder by svc. A binding that injects replaces whatever the client sends. */
const ANY_PLACEHOLDER = 'svc-stand-in-not-a-key';

/** The placeholder that the binding of this host swaps, else that of any binding of the credential. */
function placeholderFor(bound: readonly HostBindingRecord[], host: string): string {
  const own = bound.find((binding) => binding.host === host);
  if (own !== undefined) return own.sentinel?.value ?? ANY_PLACEHOLDER;
  return bound.find(({ sentinel }) => sentinel !== undefined)?.sentinel?.value ?? ANY_PLACEHOLDER;
}

/** Formats in which a line is complete in itself. */
const LINE_FORMATS: readonly FileFormat[] = ['dotenv', 'npmrc', 'git-credentials'];

/**
 * Shows the change of one file and makes it if the person agrees. The file is read again, because an earlier change may have
 * moved the place. Nothing around the credential is shown: it may be another one.
 */
async function offerReplacement(
  { context, print }: Call<SealOptions>,
  {
    path,
    value,
    placeholder,
    names,
  }: { readonly path: string; readonly value: string; readonly placeholder: string; readonly names: KnownNames },
): Promise<void> {
  const file = credentialFiles(context).find((each) => each.path === path);
  const read = file === undefined ? null : await readPlace(path);
  if (file === undefined || read?.kind !== 'text') return;
  const { text } = read;
  const found = findCredentials(file.format, text, names).find((credential) => credential.value === value);
  if (found === undefined) return;
  const replacement = found.write(placeholder);
  const isLine = LINE_FORMATS.includes(file.format);
  const place = `${toPrintable(path)}:${found.line}`;
  print.note(`${place}: ${toPrintable(found.name)}: [the credential] would become ${toPrintable(replacement)}`);
  const ways = isLine ? 'Replace it (r), delete the line (d)' : 'Replace it (r)';
  const question = `${ways}, or leave it (Enter)? No copy is kept. `;
  const answer = (await askOrStop(context, question)).trim().toLowerCase();
  if (answer === 'r') await rewriteFile(path, text, text.slice(0, found.start) + replacement + text.slice(found.end));
  else if (answer === 'd' && isLine) await rewriteFile(path, text, withoutLine(text, found.start));
  else return;
  print.note(`${toPrintable(path)} was changed.`);
}

function withoutLine(text: string, at: number): string {
  const from = text.lastIndexOf('\n', at) + 1;
  const to = text.indexOf('\n', at);
  return text.slice(0, from) + (to < 0 ? '' : text.slice(to + 1));
}
