import { z } from 'zod';

/** `GET /auth/providers`: the ways to sign in, for a page that shows a button for each. */
export const providersReply = z
  .object({
    providers: z.array(
      z.object({
        /** A provider's name. */
        name: z.string(),
        title: z.string(),
        /** Where a browser begins. */
        login_url: z.string(),
      }),
    ),
  })
  .meta({ id: 'SignInProviders' });
export type ProvidersReply = z.infer<typeof providersReply>;
