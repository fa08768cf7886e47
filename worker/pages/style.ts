/** The one style sheet. */
export const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --link: #0a58ca; }
@media (prefers-color-scheme: dark) { :root { --link: #7db3ff; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; } h3 { font-size: 1rem; margin-top: 1.5rem; }
a { color: var(--link); }
code, pre { font: 0.9em/1.45 ui-monospace, monospace; }
pre { background: var(--soft); padding: 0.8rem; overflow-x: auto; border-radius: 6px; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: 0.35rem 0.8rem 0.35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.counts { display: flex; gap: 2rem; padding: 0; list-style: none; flex-wrap: wrap; }
.counts strong { font-size: 1.6rem; display: block; }
.method { font-weight: 700; text-transform: uppercase; }
.scroll { overflow-x: auto; }
`;
