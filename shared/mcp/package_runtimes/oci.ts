import { err, ok, type Result } from '../../model/result.ts';
import { quoteWord } from '../dangers/danger.ts';
import { option, word, type NotInstallable, type PlanArgument } from '../install/plan.ts';
import { formatOciReference, isOciTag, isPinnedOci, readOciReference, type OciReference } from '../oci_reference.ts';
import { dockerArguments } from './docker_arguments.ts';
import type { PackageInEntry, PackageRuntime } from './package_runtime.ts';

/** `docker run -i --rm -e NAME image ...` (design section 7, Install): a value is never on the command line. */
export const ociRuntime: PackageRuntime = {
  registryType: 'oci',
  hints: ['docker', 'podman'],
  program: 'docker',
  registryLabel: null,
  command(item, builder) {
    const image = imageOf(item);
    if (!image.ok) return image;
    const docker = dockerArguments(item.package.runtimeArguments, image.value.repository, builder);
    if (!docker.ok) return docker;
    const rest = builder.argumentsOf([...docker.value.afterImage, ...item.package.packageArguments]);
    if (!rest.ok) return rest;
    if (image.value.digest === null) {
      builder.warn('no_integrity', 'the image is named by a tag, which whoever publishes it can move to other code');
    }
    const names = builder.env.map(({ name }) => option('-e', [{ kind: 'text', text: name }]));
    const start = [word('docker'), word('run'), word('-i'), word('--rm')];
    const command: PlanArgument[] = [
      ...start,
      ...docker.value.options,
      ...names,
      word(formatOciReference(image.value)),
      ...rest.value,
    ];
    return ok({ command, version: image.value.tag ?? image.value.digest ?? '' });
  },
};

/** The image by a tag that names a release, or by its digest. */
function imageOf({ package: item }: PackageInEntry): Result<OciReference, NotInstallable> {
  const read = readOciReference(withRegistry(item.identifier, item.registryBaseUrl));
  if (read === null) {
    const message = `Its image is called ${quoteWord(item.identifier)}, which is not an image name.`;
    return err({ reason: 'bad_identifier', message });
  }
  const named = read.tag === null && read.digest === null ? withVersion(read, item.version) : read;
  if (isPinnedOci(named)) return ok(named);
  const tag = named.tag === null ? 'names no version' : `is tagged ${quoteWord(named.tag)}, which is not one release`;
  const message = `Its image ${tag}. Add the server by hand with the version or the digest that you mean.`;
  return err({ reason: 'unpinned_version', message });
}

function withVersion(image: OciReference, version: string | null): OciReference {
  if (version === null) return image;
  if (/^sha256:[0-9a-f]{64}$/.test(version)) return { ...image, digest: version };
  return isOciTag(version) ? { ...image, tag: version } : image;
}

/** Older entries name the host of the image's registry apart. */
function withRegistry(identifier: string, baseUrl: string | null): string {
  const [first = '', ...rest] = identifier.split('/');
  const hasHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  const host = baseUrl === null ? null : (/^https:\/\/([a-z0-9.-]+(?::\d+)?)\/?$/i.exec(baseUrl)?.[1] ?? null);
  return hasHost || host === null ? identifier : `${host}/${identifier}`;
}
