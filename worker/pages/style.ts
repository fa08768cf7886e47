/** The one style sheet. */
export const STYLE = `
:root { color-scheme: light dark; --line: #8883; --soft: #8881; --link: #0a58ca; --quiet: #5c6570;
  --get: #1a7f37; --post: #0a58ca; --put: #8a5a00; --delete: #b42318; }
@media (prefers-color-scheme: dark) { :root { --link: #7db3ff; --quiet: #9aa4b0;
  --get: #5fd38d; --post: #7db3ff; --put: #e0b050; --delete: #ff8f85; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 0 auto; padding: 1rem 1.5rem 4rem; }
header { display: flex; gap: 1.5rem; align-items: baseline; border-bottom: 1px solid var(--line); padding-bottom: 0.7rem; }
header strong { font-size: 1.1rem; }
h1 { font-size: 1.5rem; margin: 1.6rem 0 0.5rem; } h2 { font-size: 1.2rem; margin: 2.4rem 0 0.6rem; }
h3 { font-size: 1rem; margin: 0 0 0.3rem; overflow-wrap: anywhere; }
p { margin: 0.4rem 0; }
a { color: var(--link); text-underline-offset: 0.15em; }
code, pre { font: 0.9em/1.45 ui-monospace, monospace; }
a.button, button { display: inline-block; font: inherit; padding: 0.4rem 0.9rem; border: 1px solid var(--line); border-radius: 6px;
  background: var(--soft); color: inherit; text-decoration: none; cursor: pointer; }
form.fields-of-a-form label { display: block; margin: 0.6rem 0; } input { font: inherit; padding: 0.35rem 0.5rem; width: min(24rem, 100%); }
pre { background: var(--soft); padding: 0.8rem; overflow-x: auto; border-radius: 6px; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: 0.35rem 1rem 0.35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--quiet); font-weight: 600; font-size: 0.9rem; }
td.time { white-space: nowrap; font-variant-numeric: tabular-nums; }
.quiet { color: var(--quiet); font-weight: 400; }
.counts { display: flex; gap: 1rem; padding: 0; list-style: none; flex-wrap: wrap; }
.counts li { background: var(--soft); border-radius: 8px; padding: 0.7rem 1.2rem; min-width: 9rem; }
.counts strong { font-size: 1.6rem; display: block; line-height: 1.2; }
.scroll { overflow-x: auto; }
.contents { columns: 3 15rem; background: var(--soft); border-radius: 8px; padding: 1rem 1.2rem; margin: 1.2rem 0 2rem; font-size: 0.92rem; }
.contents div { break-inside: avoid; margin-bottom: 0.8rem; }
.contents ul { margin: 0; padding: 0; list-style: none; }
section { border-top: 1px solid var(--line); padding: 1rem 0; }
.method { text-transform: uppercase; font-size: 0.8rem; border: 1px solid; border-radius: 4px; padding: 0.1rem 0.4rem; margin-right: 0.4rem; }
.get { color: var(--get); } .post { color: var(--post); } .put { color: var(--put); } .delete { color: var(--delete); }
.fields { width: auto; font-size: 0.92rem; } .fields .fields { font-size: 1em; }
.fields tr:last-child > td { border-bottom: 0; }
.pattern { overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1rem; margin: 0.4rem 0 0; }
dt { color: var(--quiet); } dd { margin: 0; }
`;
