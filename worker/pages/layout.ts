import { html } from 'hono/html';

export type Html = ReturnType<typeof html>;

/** A whole page. What is put into a template is escaped. */
export function layout(title: string, content: Html | Html[]): Html {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title} · svc</title>
        <link rel="stylesheet" href="/style.css" />
      </head>
      <body>
        <header><strong>svc</strong> <a href="/">Overview</a> <a href="/docs">API reference</a></header>
        <main>${content}</main>
      </body>
    </html>`;
}

/** A page with one message. */
export function messagePage(title: string, message: string): Html {
  return layout(
    title,
    html`<h1>${title}</h1>
      <p>${message}</p>`,
  );
}
