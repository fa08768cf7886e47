import { z } from 'zod';
import { parseTunnelHost } from '../../net/tunnel_host.ts';
import { id, owner, page, pageQuery, time } from '../primitives.ts';

/** A host or pattern in canonical form. */
const tunnelHostText = z
  .string()
  .max(255)
  .superRefine((text, context) => {
    const parsed = parseTunnelHost(text);
    if (!parsed.ok) context.addIssue({ code: 'custom', message: parsed.error });
  })
  .overwrite((text) => {
    const parsed = parseTunnelHost(text);
    return parsed.ok ? parsed.value : text;
  });

/** `POST /v1/tunnel-hosts` */
export const tunnelHostInput = z
  .strictObject({ host: tunnelHostText, owner: owner.default('personal') })
  .meta({ id: 'TunnelHostInput' });
export type TunnelHostInput = z.output<typeof tunnelHostInput>;

/** A host, or every host below a suffix, whose connections are carried without being intercepted. */
export const tunnelHostRecord = z
  .object({ id: id('tnl'), host: z.string(), owner, created_at: time })
  .meta({ id: 'TunnelHost' });
export type TunnelHostRecord = z.infer<typeof tunnelHostRecord>;

/** `GET /v1/tunnel-hosts`: in the order of owner and host. */
export const tunnelHostsQuery = z.strictObject({ ...pageQuery, owner: owner.optional() });
export const tunnelHostsPage = page(tunnelHostRecord).meta({ id: 'TunnelHostsPage' });
export const tunnelHostParams = z.strictObject({ id: id('tnl') });
