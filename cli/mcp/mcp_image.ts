import { z } from 'zod';
import { containerImageOf } from '../../shared/mcp/container_image.ts';
import { parseJson } from '../../shared/model/json.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { openEngine } from '../../sandbox/engine/open_engine.ts';
import type { Call } from '../command_line.ts';
import { fetchImage } from './mcp_isolation.ts';
import type { MachineServer } from './mcp_machine.ts';

/** The image that a consent would cover. */
interface OfferedImage {
  readonly id: string;
  /** For a person, before they consent. */
  readonly text: string;
  /** It is not the one that the machine has consent to. */
  readonly isNew: boolean;
}

type ImageOwner = Pick<MachineServer, 'server' | 'image'>;

/**
 * The image that the server's own `docker run` names now, by its id, fetched if the engine lacks it. Null for a server without
 * one. The error says why a consent cannot be given.
 */
export async function offerImage(
  call: Call,
  { server, image: before }: ImageOwner,
): Promise<Result<OfferedImage | null, string>> {
  const named = containerImageOf(server);
  if (named === null) return ok(null);
  const { reference, platform } = named;
  const runtime = await openEngine(call.context.env);
  if (!runtime.ok) return err(runtime.error.message);
  const fetched = await fetchImage(call, runtime.value, reference, platform);
  if (!fetched.ok) return fetched;
  const found = await runtime.value.inspectImage(reference);
  if (!found.ok) return err(found.error.message);
  const { id } = found.value;
  return ok({ id, text: imageText(reference, id), isNew: id !== before });
}

/**
 * The image for a configuration that a person typed. Who changes another part of it has seen no new image: under the same name,
 * the one that was consented to stays.
 */
export async function typedImage(
  call: Call,
  known: ImageOwner & Pick<MachineServer, 'last_consent'>,
): Promise<Result<OfferedImage | null, string>> {
  const { server, image, last_consent: last } = known;
  const reference = containerImageOf(server)?.reference;
  const before = last === null ? null : (consentedText.safeParse(parseJson(last.text)).data ?? null);
  const isSame = before !== null && containerImageOf(before)?.reference === reference;
  if (reference === undefined || image === null || !isSame) return offerImage(call, known);
  return ok({ id: image, text: imageText(reference, image), isNew: false });
}

const consentedText = z.object({ command: z.array(z.string()) });

function imageText(reference: string, id: string): string {
  return `${reference}, which is ${id}`;
}

/** What a person should know about the images of servers that have consent: a tag that has moved, an image that is gone. */
export async function imageNews(call: Call, servers: readonly MachineServer[]): Promise<readonly string[]> {
  const consented = servers.filter(({ consent, image }) => consent === 'given' && image !== null);
  if (consented.length === 0) return [];
  const runtime = await openEngine(call.context.env);
  // The status of the server says what is wrong with the engine.
  if (!runtime.ok) return [];
  const news = consented.map(async ({ server, image }) => {
    const reference = containerImageOf(server)?.reference ?? '';
    const [kept, now] = await Promise.all([
      runtime.value.inspectImage(image ?? ''),
      runtime.value.inspectImage(reference),
    ]);
    const look = `svc mcp consent ${server.name}`;
    if (!kept.ok && kept.error.reason === 'image_missing') {
      return [`${server.name}: the image that you consented to (${image}) is not in the engine any more: ${look}`];
    }
    if (!now.ok || now.value.id === image) return [];
    return [
      `${server.name}: ${reference} now names another image (${now.value.id}); it runs the one that you consented to, until: ${look}`,
    ];
  });
  return (await Promise.all(news)).flat();
}
